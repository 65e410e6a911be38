# 65536 * 65537 = 2^32 + 65536, of which 32 bits stay: 65536.
.target trn2
.constant x int32 [1, 2] 65536 -3
.constant y int32 [1, 2] 65537 7
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]
.dma qIn 1 8 y+0[1,8][8,1] -> SB+0x1100[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pool
    TENSOR_TENSOR S[8]>=32 op=MULTIPLY src0=int32@0x1000[1,1,1][2,1,1] src1=int32@0x1100[1,1,1][2,1,1] dst=int32@0x2000[1,1,1][2,1,1] channels=1
