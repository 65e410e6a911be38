# Transpose mode: bits pass through an identity, and 16-bit results pack as 16-bit elements. A NaN payload survives.
#   1 2 3      out: partition j, element n = W[n, j]
#   4 5 NaN
.target trn2
.constant w uint16 [2, 3] 1 2 3 4 5 0x7fc3
.constant i bfloat16 [2, 2] 1 0 0 1
.queue qIn sp 8
.dma qIn 0 8 w+0[1,6][6,2] -> SB+0x1000[1,262144][6,2]
.dma qIn 1 8 i+0[1,4][4,2] -> SB+0x1100[1,262144][4,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pe
    LDWEIGHTS S[8]>=32 transpose_mode=ENABLED src=bfloat16@0x1004[-1,1,1][3,1,1] 2*3
    MATMUL acc_flags=3 src=bfloat16@0x1100[1,1,1][2,1,1] dst=0x2000000[1,1,1][2,1,1] 2*3 {transpose_mode=1}
