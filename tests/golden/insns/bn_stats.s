# Even elements 1 3: count 2, mean 2, sum of squared distances 2; odd ones 2 6: 2, 4, 8.
.target trn2
.dialect extended
.constant x float32 [1, 4] 1 2 3 6
.queue qIn sp 8
.dma qIn 0 8 x+0[1,16][16,1] -> SB+0x1000[1,262144][16,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    BN_STATS S[8]>=16 src=fp32@0x1000[1,1,1,1,1][4,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][6,1,1,1,1] channels=1
