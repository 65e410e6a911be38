# 16-bit elements take the low half: 362440 = 5 * 65536 + 34760.
.target trn2
.dialect extended
.constant x uint32 [1, 6] 1 0 0 0 0 0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,24][24,1] -> SB+0x1000[1,262144][24,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    RAND_SET_STATE S[8]>=16 src=uint32@0x1000[1,1,1,1,1][6,1,1,1,1] channels=1
    RNG dst=uint16@0x2000[1,1,1,1,1][1,1,1,1,1] channels=1
