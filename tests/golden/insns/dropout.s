# Generators 0 and 2 begin with x = 1 (number 362440, fraction 0.0000843), 1 and 3 with v = 2^31: t = 0, v << 4 = 0,
# number 2^31 + 362437, fraction just above a half. Below the probability of 0.5 elements become 0; 0 drops nothing.
.target trn2
.dialect extended
.constant r uint32 [2, 24] 1 0 0 0 0 0 0 0 0 0 0x80000000 0 0 0 0 0 0 0 0 0 0 0 0x80000000 0 1 0 0 0 0 0 0
.constant x float32 [2, 2] 5 6 7 8
.constant q float32 [2, 1] 0.5 0
.queue qIn sp 8
.dma qIn 0 8 r+0[1,96][96,2] -> SB+0x1000[1,262144][96,2]
.dma qIn 1 8 x+0[1,8][8,2] -> SB+0x1100[1,262144][8,2]
.dma qIn 2 8 q+0[1,4][4,2] -> SB+0x1200[1,262144][4,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1
    PSEUDO_DMA_TRIGGER qIn block_id=2

.engine dve
    RAND_SET_STATE S[8]>=48 src=uint32@0x1000[1,1,1,1,1][24,1,1,1,1] channels=2
    DROPOUT imm=0x1200 imm_src=PTR probability_dtype=FLOAT32 src=fp32@0x1100[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][2,1,1,1,1] channels=2
