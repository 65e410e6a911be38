# fp16 to fp32 is exact, subnormals (2^-24) and infinities too.
.target trn2
.constant x float16 [1, 4] 5.960464477539063e-08 -inf 1.5 -0.0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    CAST S[8]>=16 src=fp16@0x1000[1,1,1,1][4,1,1,1] dst=fp32@0x2000[1,1,1,1][4,1,1,1] channels=1
