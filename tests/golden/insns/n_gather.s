# Each partition has its own indices.
.target trn2
.dialect extended
.constant x float32 [2, 3] 1 2 3 4 5 6
.constant i uint32 [2, 4] 2 0 0 1 1 1 2 0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,2] -> SB+0x1000[1,262144][12,2]
.dma qIn 1 8 i+0[1,16][16,2] -> SB+0x1100[1,262144][16,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pool
    N_GATHER S[8]>=32 src=fp32@0x1000[1,1,1,1,1][3,1,1,1,1] indices=uint32@0x1100[1,1,1,1,1][4,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][4,1,1,1,1] channels=2
