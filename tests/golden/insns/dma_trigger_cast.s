# fp32 to bfloat16 to nearest even (1 + 2^-8 goes to 1), strides on both sides: the even elements of x.
.target trn2
.constant x float32 [4] 1.00390625 9 -2 9
.queue qIn sp 8
.dma qIn 0 8 fp32@x+0[1,8][4,2] -> bfloat16@SB+0x1000[1,4][2,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
