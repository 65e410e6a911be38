# The running value on the left: (r - src) + src1, from 100 and -1: 99, 99-2+10 = 107; -2, -2-2+10 = 6.
.target trn2
.dialect extended
.constant x float32 [2, 2] 1 2 1 2
.constant y float32 [2, 2] 0 10 0 10
.constant r float32 [2, 1] 100 -1
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,2] -> SB+0x1000[1,262144][8,2]
.dma qIn 1 8 y+0[1,8][8,2] -> SB+0x1100[1,262144][8,2]
.dma qIn 2 8 r+0[1,4][4,2] -> SB+0x1200[1,262144][4,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1
    PSEUDO_DMA_TRIGGER qIn block_id=2

.engine dve
    TENSOR_TENSOR_SCAN S[8]>=48 ops=SUBTRACT,ADD imm=0x1200 imm_src=PTR initial_dtype=FLOAT32 src=fp32@0x1000[1,1,1,1,1][2,1,1,1,1] src1=fp32@0x1100[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][2,1,1,1,1] channels=2 reverse0=1
