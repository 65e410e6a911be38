# out[j, n] = sum over k of W[k, j] X[k, n]. The stationary tile streams backwards, so column 0 is the last element read.
#   W = 1 2    X = 1 0 2    out = 1*1+3*3  1*0+3*1  1*2+3*1   = 10 3 5
#       3 4        3 1 1          2*1+4*3  2*0+4*1  2*2+4*1     14 4 8
.target trn2
.constant w bfloat16 [2, 2] 1 2 3 4
.constant x bfloat16 [2, 3] 1 0 2 3 1 1
.queue qIn sp 8
.dma qIn 0 8 w+0[1,4][4,2] -> SB+0x1000[1,262144][4,2]
.dma qIn 1 8 x+0[1,6][6,2] -> SB+0x1100[1,262144][6,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pe
    LDWEIGHTS S[8]>=32 transpose_mode=DISABLED src=bfloat16@0x1002[-1,1,1][2,1,1] 2*2
    MATMUL S[5]++@complete acc_flags=3 src=bfloat16@0x1100[1,1,1][3,1,1] dst=0x2000000[1,1,1][3,1,1] 2*2
