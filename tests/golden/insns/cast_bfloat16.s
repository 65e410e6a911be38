# bfloat16 keeps 8 significant bits, to nearest even: 1 + 2^-8 lies between 1 and 1 + 2^-7 and goes to the even one, 1;
# 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6 to the latter. The greatest fp32 overflows to infinity.
.target trn2
.constant x float32 [1, 5] 1.00390625 1.01171875 -2.5 3.4028234663852886e38 nan
.queue qIn sp 8
.dma qIn 0 8 x+0[1,20][20,1] -> SB+0x1000[1,262144][20,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    CAST S[8]>=16 src=fp32@0x1000[1,1,1,1][5,1,1,1] dst=bfloat16@0x2000[1,1,1,1][5,1,1,1] channels=1
