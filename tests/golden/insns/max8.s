# The eight largest of ten, descending, with repetitions.
.target trn2
.dialect extended
.constant x float32 [1, 10] 3 -1 7 7 0 2 -5 9 1 4
.queue qIn sp 8
.dma qIn 0 8 x+0[1,40][40,1] -> SB+0x1000[1,262144][40,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    MAX8 S[8]>=16 src=fp32@0x1000[1,1,1,1,1][10,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][8,1,1,1,1] channels=1
