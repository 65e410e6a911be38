# The contraction over 2 rows that start at partition 32: 3*5 + 4*6 = 39.
.target trn2
.constant w float16 [2, 1] 3 4
.constant x float16 [2, 1] 5 6
.queue qIn sp 8
.dma qIn 0 8 w+0[1,2][2,2] -> SB+0x801000[1,262144][2,2]
.dma qIn 1 8 x+0[1,2][2,2] -> SB+0x801100[1,262144][2,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pe
    LDWEIGHTS S[8]>=32 transpose_mode=DISABLED src=fp16@0x801000[1,1,1][1,1,1] 2*1
    MATMUL acc_flags=3 src=fp16@0x801100[1,1,1][1,1,1] dst=0x2000000[1,1,1][1,1,1] 2*1
