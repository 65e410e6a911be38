# The output is one of the inputs.
.target trn2
.constant x float32 [1, 3] 1 -2 3
.constant y float32 [1, 3] 0 5 -1
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,1] -> SB+0x1000[1,262144][12,1]
.dma qIn 1 8 y+0[1,12][12,1] -> SB+0x1100[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine dve
    TENSOR_TENSOR S[8]>=32 op=MAX src0=fp32@0x1000[1,1,1][3,1,1] src1=fp32@0x1100[1,1,1][3,1,1] dst=fp32@0x1000[1,1,1][3,1,1] channels=1
