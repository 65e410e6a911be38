# Elements correspond in the order of the walk: a 2 x 3 tile read column by column.
#   1 2 3
#   4 5 6    inner step 3, count 2; outer step 1, count 3
.target trn2
.constant x float32 [1, 6] 1 2 3 4 5 6
.queue qIn sp 8
.dma qIn 0 8 x+0[1,24][24,1] -> SB+0x1000[1,262144][24,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    COPY S[8]>=16 src=fp32@0x1000[3,1,1,1][2,3,1,1] dst=fp32@0x2000[1,1,1,1][6,1,1,1] channels=1
