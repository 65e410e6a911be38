# 2^31 is out of range and becomes 2^31 - 1; -2^31 fits. 2^24 + 1 as int32 has 25 bits: fp32 keeps 24, to even: 2^24.
.target trn2
.constant x float32 [1, 2] 2147483648 -2147483648
.constant y int32 [1, 2] 16777217 -7
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]
.dma qIn 1 8 y+0[1,8][8,1] -> SB+0x1100[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pool
    CAST S[8]>=32 src=fp32@0x1000[1,1,1,1][2,1,1,1] dst=int32@0x2000[1,1,1,1][2,1,1,1] channels=1
    CAST src=int32@0x1100[1,1,1,1][2,1,1,1] dst=fp32@0x2010[1,1,1,1][2,1,1,1] channels=1
