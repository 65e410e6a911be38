# Squares of 2x + 1: x = 1 2 gives 9 25, reset and sum 34; x = -1 gives 1, added: 35. Partition 1: scale 0 (pointer
# 2, 0), squares 1 1, then 1: 3.
.target trn2
.dialect extended
.constant x float32 [2, 3] 1 2 -1 1 2 -1
.constant s float32 [2, 1] 2 0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,2] -> SB+0x1000[1,262144][12,2]
.dma qIn 1 8 s+0[1,4][4,2] -> SB+0x1100[1,262144][4,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine act
    ACTIVATION_EXTENDED S[8]>=32 SQUARE imm=0x1100,1.0 imm_src=PTR,INSTRUCTION bias_dtype=FLOAT32 src=fp32@0x1000[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][2,1,1,1,1] channels=2 accumulator_cmd=RESET_REDUCE reduce_op=ADD
    ACTIVATION_EXTENDED SQUARE imm=0x1100,1.0 imm_src=PTR,INSTRUCTION bias_dtype=FLOAT32 src=fp32@0x1008[1,1,1,1,1][1,1,1,1,1] dst=fp32@0x2008[1,1,1,1,1][1,1,1,1,1] channels=2 accumulator_cmd=REDUCE reduce_op=ADD
    ACTIVATION_READ_ACCUMULATOR S[5]++@complete dst=fp32@0x2010[1,1,1,1,1][1,1,1,1,1] channels=2
