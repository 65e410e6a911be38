# One value per partition: (x + a[p]) * b[p] with a = 10, 20 and b = 2, -1.
.target trn2
.constant x float32 [2, 2] 1 2 3 4
.constant a float32 [2, 1] 10 20
.constant b float32 [2, 1] 2 -1
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,2] -> SB+0x1000[1,262144][8,2]
.dma qIn 1 8 a+0[1,4][4,2] -> SB+0x1100[1,262144][4,2]
.dma qIn 2 8 b+0[1,4][4,2] -> SB+0x1110[1,262144][4,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1
    PSEUDO_DMA_TRIGGER qIn block_id=2

.engine dve
    TENSOR_SCALAR S[8]>=48 ops=ADD,MULTIPLY imm=0x1100,0x1110 imm_src=PTR,PTR src=fp32@0x1000[1,1,1][2,1,1] dst=fp32@0x2000[1,1,1][2,1,1] channels=2
