# One pass moves whole fp32 words, bits unchanged: a NaN with payload does not leak into its neighbours.
.target trn2
.constant w uint32 [2, 2] 0x7fc00123 0x3f800000 0x40000000 0x00000001
.constant i float32 [2, 2] 1 0 0 1
.queue qIn sp 8
.dma qIn 0 8 w+0[1,8][8,2] -> SB+0x1000[1,262144][8,2]
.dma qIn 1 8 i+0[1,8][8,2] -> SB+0x1100[1,262144][8,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pe
    LDWEIGHTS S[8]>=32 fp32_mode=LOW transpose_mode=ENABLED src=fp32@0x1004[-1,1,1][2,1,1] 2*2
    MATMUL acc_flags=3 fp32_mode=LOW_HIGH src=fp32@0x1100[1,1,1][2,1,1] dst=0x2000000[1,1,1][2,1,1] 2*2 {transpose_mode=1}
