# src where the predicate holds; elsewhere dst stays. Reversed, and with a number.
.target trn2
.dialect extended
.constant p uint8 [1, 3] 1 0 1
.constant x float32 [1, 3] 1 2 3
.constant y float32 [1, 6] -1 -2 -3 -4 -5 -6
.queue qIn sp 8
.dma qIn 0 8 p+0[1,3][3,1] -> SB+0x1000[1,262144][3,1]
.dma qIn 1 8 x+0[1,12][12,1] -> SB+0x1100[1,262144][12,1]
.dma qIn 2 8 y+0[1,24][24,1] -> SB+0x2000[1,262144][24,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1
    PSEUDO_DMA_TRIGGER qIn block_id=2

.engine dve
    COPY_PREDICATED S[8]>=48 src=fp32@0x1100[1,1,1,1,1][3,1,1,1,1] value=0.0 predicate=uint8@0x1000[1,1,1,1,1][3,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][3,1,1,1,1] channels=1
    COPY_PREDICATED value=7.5 predicate=uint8@0x1000[1,1,1,1,1][3,1,1,1,1] dst=fp32@0x200c[1,1,1,1,1][3,1,1,1,1] channels=1 reverse=1
