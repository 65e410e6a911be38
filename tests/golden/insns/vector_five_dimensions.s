# Extension words walk five dimensions: 2x1x2x1x2 of eight elements, the middle one backwards.
.target trn2
.dialect extended
.constant p uint8 [1, 8] 1
.constant x float32 [1, 8] 0 1 2 3 4 5 6 7
.queue qIn sp 8
.dma qIn 0 8 p+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]
.dma qIn 1 8 x+0[1,32][32,1] -> SB+0x1100[1,262144][32,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine dve
# start at element 2: inner step 1, middle -2, outer 4: 2 3 0 1 6 7 4 5
    SELECT S[8]>=32 predicate=uint8@0x1000[1,1,1,1,1][8,1,1,1,1] src=fp32@0x1108[1,1,-2,1,4][2,1,2,1,2] imm=0.0 dst=fp32@0x2000[1,1,1,1,1][8,1,1,1,1] channels=1
