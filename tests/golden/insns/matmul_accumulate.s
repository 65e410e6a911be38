# Flags 1 (first: overwrite), 0 and 2 (last) add to PSUM: W = [2], X = 1, 10, 100, 100: 2 + 20 + 200 + 200 = 422.
# Flags 3 overwrite: the 2 in the next place becomes 20.
.target trn2
.constant q float16 [1, 1] 2
.constant x float16 [1, 3] 1 10 100
.queue qIn sp 8
.dma qIn 0 8 q+0[1,2][2,1] -> SB+0x1000[1,262144][2,1]
.dma qIn 1 8 x+0[1,6][6,1] -> SB+0x1100[1,262144][6,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pe
    LDWEIGHTS S[8]>=32 transpose_mode=DISABLED src=fp16@0x1000[1,1,1][1,1,1] 1*1
    MATMUL acc_flags=1 src=fp16@0x1100[1,1,1][1,1,1] dst=0x2000000[1,1,1][1,1,1] 1*1
    MATMUL acc_flags=0 src=fp16@0x1102[1,1,1][1,1,1] dst=0x2000000[1,1,1][1,1,1] 1*1
    MATMUL acc_flags=2 src=fp16@0x1104[1,1,1][1,1,1] dst=0x2000000[1,1,1][1,1,1] 1*1
    MATMUL acc_flags=2 src=fp16@0x1104[1,1,1][1,1,1] dst=0x2000000[1,1,1][1,1,1] 1*1
    MATMUL acc_flags=1 src=fp16@0x1100[1,1,1][1,1,1] dst=0x2000004[1,1,1][1,1,1] 1*1
    MATMUL S[5]++@complete acc_flags=3 src=fp16@0x1102[1,1,1][1,1,1] dst=0x2000004[1,1,1][1,1,1] 1*1
