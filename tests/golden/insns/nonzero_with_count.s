# Places 1 and 3, shifted by 10, then padding, then their number.
.target trn2
.dialect extended
.constant x float32 [1, 4] 0 3 0 -5
.queue qIn sp 8
.dma qIn 0 8 x+0[1,16][16,1] -> SB+0x1000[1,262144][16,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    NONZERO_WITH_COUNT S[8]>=16 src=fp32@0x1000[1,1,1,1,1][4,1,1,1,1] dst=int32@0x2000[1,1,1,1,1][5,1,1,1,1] channels=1 index_offset=10 padding=-1
