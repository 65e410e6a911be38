# 1/x in fp32: powers of two are exact, 1/3 is the nearest fp32 (0x3eaaaaab), 1/-0 is -inf.
.target trn2
.constant x float32 [1, 4] 4 -0.5 3 -0.0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,16][16,1] -> SB+0x1000[1,262144][16,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    RECIPROCAL S[8]>=16 S[5]++@complete src=fp32@0x1000[1,1,1,1][4,1,1,1] dst=fp32@0x2000[1,1,1,1][4,1,1,1] channels=1
