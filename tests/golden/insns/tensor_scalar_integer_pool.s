# Pool computes integers exactly: (2^24 + 1) * 3 + 1 = 50331652, and wraps: (2^31 - 1) * 3 + 1 = 3 * 2^31 - 2, modulo
# 2^32 2^31 - 2.
.target trn2
.dialect extended
.constant x int32 [1, 2] 16777217 2147483647
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    TENSOR_SCALAR S[8]>=16 ops=MULTIPLY,ADD imm=i3,i1 imm_src=INSTRUCTION,INSTRUCTION src=int32@0x1000[1,1,1][2,1,1] dst=int32@0x2000[1,1,1][2,1,1] channels=1
