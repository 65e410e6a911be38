# fp32 in two passes, W_low X + W_high X (isa.md 11): W = 1 + 2^-20 has bits in both halves, so either pass alone
# would leave 1 or 2^-20. 3 * (1 + 2^-20) = 3.00000286102294921875 is exact in fp32.
.target trn2
.constant w float32 [1, 1] 1.00000095367431640625
.constant x float32 [1, 1] 3
.queue qIn sp 8
.dma qIn 0 8 w+0[1,4][4,1] -> SB+0x1000[1,262144][4,1]
.dma qIn 1 8 x+0[1,4][4,1] -> SB+0x1100[1,262144][4,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pe
    LDWEIGHTS S[8]>=32 fp32_mode=LOW transpose_mode=DISABLED src=fp32@0x1000[1,1,1][1,1,1] 1*1
    MATMUL acc_flags=1 fp32_mode=LOW_HIGH src=fp32@0x1100[1,1,1][1,1,1] dst=0x2000000[1,1,1][1,1,1] 1*1
    LDWEIGHTS fp32_mode=HIGH transpose_mode=DISABLED src=fp32@0x1000[1,1,1][1,1,1] 1*1
    MATMUL S[5]++@complete acc_flags=2 fp32_mode=LOW_HIGH src=fp32@0x1100[1,1,1][1,1,1] dst=0x2000000[1,1,1][1,1,1] 1*1
