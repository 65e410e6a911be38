# A bank has 2 KiB: 0x7fc + 8 bytes lie in two.
.target trn2
.constant w float16 [1, 1] 2
.constant x float16 [1, 2] 1 10
.queue qIn sp 8
.dma qIn 0 8 w+0[1,2][2,1] -> SB+0x1000[1,262144][2,1]
.dma qIn 1 8 x+0[1,4][4,1] -> SB+0x1100[1,262144][4,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pe
    LDWEIGHTS S[8]>=32 transpose_mode=DISABLED src=fp16@0x1000[1,1,1][1,1,1] 1*1
    MATMUL acc_flags=3 src=fp16@0x1100[1,1,1][2,1,1] dst=0x20007fc[1,1,1][2,1,1] 1*1
