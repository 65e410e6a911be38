# HIGH alone carries the fp32 value without its 12 low mantissa bits: 1 + 2^-20 becomes 1, 1 + 2^-11 stays.
.target trn2
.constant w float32 [1, 2] 1.00048828125 1.00000095367431640625
.constant x float32 [1, 1] 3
.queue qIn sp 8
.dma qIn 0 8 w+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]
.dma qIn 1 8 x+0[1,4][4,1] -> SB+0x1100[1,262144][4,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pe
    LDWEIGHTS S[8]>=32 fp32_mode=HIGH transpose_mode=DISABLED src=fp32@0x1004[-1,1,1][2,1,1] 1*2
    MATMUL acc_flags=3 fp32_mode=LOW_HIGH src=fp32@0x1100[1,1,1][1,1,1] dst=0x2000000[1,1,1][1,1,1] 1*2
