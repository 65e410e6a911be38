# SplitMix64 from the seed 5, the high halves with bit 0 set (emulator.generators): for the word i = 1 to 24
#   m = 5 * 0x2545f4914f6cdd1d + i * 0x9e3779b97f4a7c15; m = (m ^ m >> 30) * 0xbf58476d1ce4e5b9;
#   m = (m ^ m >> 27) * 0x94d049bb133111eb; word = m >> 32 | 1, modulo 2^64, computed with plain integers.
.target trn2
.dialect extended
.constant s uint32 [1, 1] 5
.queue qIn sp 8
.dma qIn 0 8 s+0[1,4][4,1] -> SB+0x1000[1,262144][4,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    SET_RNG_SEED S[8]>=16 src=uint32@0x1000[1,1,1,1,1][1,1,1,1,1] channels=1
    RAND_GET_STATE dst=uint32@0x2000[1,1,1,1,1][24,1,1,1,1] channels=1
