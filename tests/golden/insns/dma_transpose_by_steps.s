# A 2 x 3 matrix into 3 partitions of 2 elements: element by element, outer step 4 (columns), inner step 12 (rows).
.target trn2
.constant x float32 [2, 3] 1 2 3 4 5 6
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12,4][4,2,3] -> SB+0x1000[1,4,262144][4,2,3]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
