# Comparisons give 1 and 0; nothing equals NaN.
.target trn2
.dialect extended
.constant x float32 [1, 3] 1 2 nan
.constant y float32 [1, 3] 2 2 nan
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,1] -> SB+0x1000[1,262144][12,1]
.dma qIn 1 8 y+0[1,12][12,1] -> SB+0x1100[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine dve
    TENSOR_TENSOR S[8]>=32 op=LESS src0=fp32@0x1000[1,1,1][3,1,1] src1=fp32@0x1100[1,1,1][3,1,1] dst=fp32@0x2000[1,1,1][3,1,1] channels=1
    TENSOR_TENSOR op=EQUAL src0=fp32@0x1000[1,1,1][3,1,1] src1=fp32@0x1100[1,1,1][3,1,1] dst=uint8@0x2010[1,1,1][3,1,1] channels=1
