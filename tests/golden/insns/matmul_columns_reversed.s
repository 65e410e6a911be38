# Streamed forwards, the columns come out in the other order: W's columns 2 4 and 1 3.
.target trn2
.constant w bfloat16 [2, 2] 1 2 3 4
.constant x bfloat16 [2, 1] 1 3
.queue qIn sp 8
.dma qIn 0 8 w+0[1,4][4,2] -> SB+0x1000[1,262144][4,2]
.dma qIn 1 8 x+0[1,2][2,2] -> SB+0x1100[1,262144][2,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pe
    LDWEIGHTS S[8]>=32 transpose_mode=DISABLED src=bfloat16@0x1000[1,1,1][2,1,1] 2*2
    MATMUL acc_flags=3 src=bfloat16@0x1100[1,1,1][1,1,1] dst=0x2000000[1,1,1][1,1,1] 2*2
