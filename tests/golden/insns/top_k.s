# Elements of a group run over the partitions first: column 0 is 5 1 0 0 ..., the 17th element, 9, column 1 of partition
# 0. The two largest, ascending, and their places, in every partition. The 18th would be 100, but 17 count.
.target trn2
.dialect extended
.constant x float32 [16, 2] 5 9 1 100 0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,16] -> SB+0x1000[1,262144][8,16]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    TOP_K S[8]>=16 src=fp32@0x1000[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][2,1,1,1,1] indices=uint32@0x2010[1,1,1,1,1][2,1,1,1,1] channels=16 count=17
