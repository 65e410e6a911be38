# A step of 0 repeats an element.
.target trn2
.constant x float32 [1, 2] 7 8
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    COPY S[8]>=16 src=fp32@0x1000[0,1,1,1][3,2,1,1] dst=fp32@0x2000[1,1,1,1][6,1,1,1] channels=1
