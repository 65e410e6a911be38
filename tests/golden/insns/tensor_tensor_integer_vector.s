# Vector adds in fp32: 2^24 + 1 reads as 2^24 (to even), + 2 gives 2^24 + 2. 2^31 - 1 reads as 2^31, + 0 saturates.
.target trn2
.constant x int32 [1, 3] 16777217 2147483647 -5
.constant y int32 [1, 3] 2 0 3
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,1] -> SB+0x1000[1,262144][12,1]
.dma qIn 1 8 y+0[1,12][12,1] -> SB+0x1100[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine dve
    TENSOR_TENSOR S[8]>=32 op=ADD src0=int32@0x1000[1,1,1][3,1,1] src1=int32@0x1100[1,1,1][3,1,1] dst=int32@0x2000[1,1,1][3,1,1] channels=1
