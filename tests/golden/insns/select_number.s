# -3.4028235e38, the least fp32, where the predicate is 0; -0.0 counts as zero.
.target trn2
.dialect extended
.constant p float32 [1, 3] 0.5 -0.0 nan
.constant x float32 [1, 3] 1 2 3
.queue qIn sp 8
.dma qIn 0 8 p+0[1,12][12,1] -> SB+0x1000[1,262144][12,1]
.dma qIn 1 8 x+0[1,12][12,1] -> SB+0x1100[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine dve
    SELECT S[8]>=32 predicate=fp32@0x1000[1,1,1,1,1][3,1,1,1,1] src=fp32@0x1100[1,1,1,1,1][3,1,1,1,1] imm=-3.4028234663852886e38 dst=fp32@0x2000[1,1,1,1,1][3,1,1,1,1] channels=1
