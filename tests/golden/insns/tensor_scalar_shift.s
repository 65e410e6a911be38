# Integer immediates: (x << 4) | 1, bits as they are: 0xf0000001 loses its upper four.
.target trn2
.dialect extended
.constant x uint32 [1, 2] 3 0xf0000001
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    TENSOR_SCALAR S[8]>=16 ops=LEFT_SHIFT,BITWISE_OR imm=i4,i1 imm_src=INSTRUCTION,INSTRUCTION src=uint32@0x1000[1,1,1][2,1,1] dst=uint32@0x2000[1,1,1][2,1,1] channels=1
