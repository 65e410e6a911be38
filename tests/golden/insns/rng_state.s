# GpSimd has one xorwow per lane: x y z w v and the counter d. From x = 1, the rest 0: t = x ^ x >> 2 = 1,
# v = 0 ^ 0 << 4 ^ t ^ t << 1 = 3, d = 362437, number v + d = 362440. Then t = 0, v = 3 ^ 48 = 51, d = 724874,
# number 724925; the state is 0 0 0 3 51 724874.
.target trn2
.dialect extended
.constant x uint32 [1, 6] 1 0 0 0 0 0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,24][24,1] -> SB+0x1000[1,262144][24,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    RAND_SET_STATE S[8]>=16 S[5]++@complete src=uint32@0x1000[1,1,1,1,1][6,1,1,1,1] channels=1
    RNG S[5]>=1 dst=uint32@0x2000[1,1,1,1,1][2,1,1,1,1] channels=1
    RAND_GET_STATE dst=uint32@0x2010[1,1,1,1,1][6,1,1,1,1] channels=1
