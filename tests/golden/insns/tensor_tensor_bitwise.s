# 0b1100 and/or/xor 0b1010 = 0b1000, 0b1110, 0b0110; the same on all ones and zero.
.target trn2
.dialect extended
.constant x uint32 [1, 2] 12 0xffffffff
.constant y uint32 [1, 2] 10 0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]
.dma qIn 1 8 y+0[1,8][8,1] -> SB+0x1100[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine dve
    TENSOR_TENSOR S[8]>=32 op=BITWISE_AND src0=uint32@0x1000[1,1,1][2,1,1] src1=uint32@0x1100[1,1,1][2,1,1] dst=uint32@0x2000[1,1,1][2,1,1] channels=1
    TENSOR_TENSOR op=BITWISE_OR src0=uint32@0x1000[1,1,1][2,1,1] src1=uint32@0x1100[1,1,1][2,1,1] dst=uint32@0x2008[1,1,1][2,1,1] channels=1
    TENSOR_TENSOR op=BITWISE_XOR src0=uint32@0x1000[1,1,1][2,1,1] src1=uint32@0x1100[1,1,1][2,1,1] dst=uint32@0x2010[1,1,1][2,1,1] channels=1
