# The second input on the left of op1: 10 - 2x.
.target trn2
.dialect extended
.constant x float32 [1, 3] 1 2 3
.constant y float32 [1, 3] 10
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,1] -> SB+0x1000[1,262144][12,1]
.dma qIn 1 8 y+0[1,12][12,1] -> SB+0x1100[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine dve
    SCALAR_TENSOR_TENSOR S[8]>=32 ops=MULTIPLY,SUBTRACT imm=2.0 imm_src=INSTRUCTION immediate0_dtype=FLOAT32 src=fp32@0x1000[1,1,1,1,1][3,1,1,1,1] src1=fp32@0x1100[1,1,1,1,1][3,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][3,1,1,1,1] channels=1 reverse1=1
