# Indices 0, 1, then 2 fourteen times, then 3, for all of the 16 partitions of x: 1 2 3 4 ... 17 in partition 0, 17 in
# the others. Column 4 of y, of six 9s, stays 9; of equal indices the last counts (16), or all are added (9 + 3 + ... + 16 = 142).
.target trn3
.dialect extended
.constant x float32 [16, 17] 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
.constant y float32 [16, 5] 9
.constant i uint16 [16, 2] 0 3 1 2
.constant p uint8 [16, 17] 1 0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,68][68,16] -> SB+0x1000[1,262144][68,16]
.dma qIn 1 8 i+0[1,4][4,16] -> SB+0x1100[1,262144][4,16]
.dma qIn 2 8 y+0[1,20][20,16] -> SB+0x2000[1,262144][20,16]
.dma qIn 3 8 y+0[1,20][20,16] -> SB+0x2100[1,262144][20,16]
.dma qIn 4 8 y+0[1,20][20,16] -> SB+0x2200[1,262144][20,16]
.dma qIn 5 8 p+0[1,17][17,16] -> SB+0x1200[1,262144][17,16]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1
    PSEUDO_DMA_TRIGGER qIn block_id=2
    PSEUDO_DMA_TRIGGER qIn block_id=3
    PSEUDO_DMA_TRIGGER qIn block_id=4
    PSEUDO_DMA_TRIGGER qIn block_id=5

.engine dve
    INDIRECT_WRITE S[8]>=96 src=fp32@0x1000[1,1,1,1,1][17,1,1,1,1] indices=uint16@0x1100[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][5,1,1,1,1] channels=16 group=16
    INDIRECT_WRITE src=fp32@0x1000[1,1,1,1,1][17,1,1,1,1] indices=uint16@0x1100[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2100[1,1,1,1,1][5,1,1,1,1] channels=16 group=16 accumulate=1
# The predicate holds in partition 0 for element 0 only, in the others for none.
    INDIRECT_WRITE src=fp32@0x1000[1,1,1,1,1][17,1,1,1,1] indices=uint16@0x1100[1,1,1,1,1][2,1,1,1,1] predicate=uint8@0x1200[1,1,1,1,1][17,1,1,1,1] dst=fp32@0x2200[1,1,1,1,1][5,1,1,1,1] channels=16 group=16
