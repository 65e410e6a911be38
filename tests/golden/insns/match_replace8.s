# What each value finds becomes -100. The last value goes first, so the second 7 takes place 2 and the first one 3.
.target trn2
.dialect extended
.constant x float32 [1, 10] 3 -1 7 7 0 2 -5 9 1 4
.constant v float32 [1, 8] 9 7 7 4 8 -5 6 3
.queue qIn sp 8
.dma qIn 0 8 x+0[1,40][40,1] -> SB+0x1000[1,262144][40,1]
.dma qIn 1 8 v+0[1,32][32,1] -> SB+0x1100[1,262144][32,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine dve
    MATCH_REPLACE8 S[8]>=32 src=fp32@0x1000[1,1,1,1,1][10,1,1,1,1] values=fp32@0x1100[1,1,1,1,1][8,1,1,1,1] imm=-100.0 dst=fp32@0x2000[1,1,1,1,1][10,1,1,1,1] indices=uint32@0x2030[1,1,1,1,1][8,1,1,1,1] channels=1
