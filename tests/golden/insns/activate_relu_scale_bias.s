# max(0, x * 2 + b[p]) with b = 1, -10.
.target trn2
.dialect extended
.constant x float32 [2, 2] 1 -3 2 8
.constant b float32 [2, 1] 1 -10
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,2] -> SB+0x1000[1,262144][8,2]
.dma qIn 1 8 b+0[1,4][4,2] -> SB+0x1100[1,262144][4,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine act
    ACTIVATE S[8]>=32 RELU bias_ptr=fp32@0x1100 src=fp32@0x1000[1,1,1][2,1,1] dst=fp32@0x2000[1,1,1][2,1,1] channels=2 scale=2.0 imm=0.0 accumulator_cmd=IDLE
