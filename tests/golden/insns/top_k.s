# Elements of a group run over partitions first: 5 1 9 3. The two largest, ascending, and their places, everywhere.
.target trn2
.dialect extended
.constant x float32 [16, 1] 5 1 9 3 100
.queue qIn sp 8
.dma qIn 0 8 x+0[1,4][4,16] -> SB+0x1000[1,262144][4,16]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    TOP_K S[8]>=16 src=fp32@0x1000[1,1,1,1,1][1,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][2,1,1,1,1] indices=uint32@0x2010[1,1,1,1,1][2,1,1,1,1] channels=16 count=4
