# r = (src op0 r) op1 src1 from 1: 2*1+10 = 12, 3*12+20 = 56, 4*56+30 = 254.
.target trn2
.dialect extended
.constant x float32 [1, 3] 2 3 4
.constant y float32 [1, 3] 10 20 30
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,1] -> SB+0x1000[1,262144][12,1]
.dma qIn 1 8 y+0[1,12][12,1] -> SB+0x1100[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine dve
    TENSOR_TENSOR_SCAN S[8]>=32 S[5]++@complete ops=MULTIPLY,ADD imm=1.0 imm_src=INSTRUCTION initial_dtype=FLOAT32 src=fp32@0x1000[1,1,1,1,1][3,1,1,1,1] src1=fp32@0x1100[1,1,1,1,1][3,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][3,1,1,1,1] channels=1
