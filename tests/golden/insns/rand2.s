# Vector has four generators. All from x = 1: the number 362440 four times (rng_state), of which the upper 24 bits are
# 1415; 1415 * 2^-24 * (2^24 - 0) + 0 = 1415.
.target trn3
.dialect extended
.constant x uint32 [1, 24] 1 0 0 0 0 0 1 0 0 0 0 0 1 0 0 0 0 0 1 0 0 0 0 0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,96][96,1] -> SB+0x1000[1,262144][96,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    RAND_SET_STATE S[8]>=16 src=uint32@0x1000[1,1,1,1,1][24,1,1,1,1] channels=1
    RAND2 imm=0.0,16777216.0 imm_src=INSTRUCTION,INSTRUCTION dst=fp32@0x2000[1,1,1,1,1][4,1,1,1,1] channels=1
