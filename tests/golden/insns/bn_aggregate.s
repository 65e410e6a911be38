# The statistics of 1 2 3 6 as two triples: mean 12/4 = 3, variance (4 + 1 + 0 + 9)/4 = 3.5.
.target trn2
.dialect extended
.constant x float32 [1, 6] 2 2 2 2 4 8
.queue qIn sp 8
.dma qIn 0 8 x+0[1,24][24,1] -> SB+0x1000[1,262144][24,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    BN_AGGREGATE S[8]>=16 src=fp32@0x1000[1,1,1,1,1][6,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][2,1,1,1,1] channels=1
