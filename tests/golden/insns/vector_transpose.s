# 2 partitions of 3 elements become 3 of 2.
.target trn2
.dialect extended
.constant x uint16 [2, 3] 1 2 3 4 5 6
.queue qIn sp 8
.dma qIn 0 8 x+0[1,6][6,2] -> SB+0x1000[1,262144][6,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    VECTOR_TRANSPOSE S[8]>=16 src=uint16@0x1000[1,1,1,1,1][3,1,1,1,1] dst=uint16@0x2000[1,1,1,1,1][2,1,1,1,1] channels=2 columns=3
