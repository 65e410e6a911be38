# Columns at the indices of a group of 16 partitions, which run over the partitions first: 0, 1, then 2 fourteen times,
# and column 1 of partition 0: 3. Partition 0 is 1 2 3 4, the others are 4 throughout.
.target trn3
.dialect extended
.constant x float32 [16, 4] 1 2 3 4
.constant i uint16 [16, 2] 0 3 1 2
.queue qIn sp 8
.dma qIn 0 8 x+0[1,16][16,16] -> SB+0x1000[1,262144][16,16]
.dma qIn 1 8 i+0[1,4][4,16] -> SB+0x1100[1,262144][4,16]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine dve
    INDIRECT_READ S[8]>=32 src=fp32@0x1000[1,1,1,1,1][4,1,1,1,1] indices=uint16@0x1100[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][17,1,1,1,1] channels=16 group=16
