# fp16 has 11 significant bits and ends at 65504; 65519.996 still rounds down to it, 65520 is half-way to 65536 and
# overflows. 2^-25 is half of the least subnormal, 2^-24, and goes to the even one, 0.
.target trn2
.constant x float32 [1, 6] 2049 2051 65519.99609375 65520 2.9802322387695312e-08 -0.0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,24][24,1] -> SB+0x1000[1,262144][24,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine act
    CAST S[8]>=16 src=fp32@0x1000[1,1,1,1][6,1,1,1] dst=fp16@0x2000[1,1,1,1][6,1,1,1] channels=1
