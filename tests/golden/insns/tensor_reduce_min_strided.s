# The inner dimension is the strided one: columns of 1 5 | 4 2 | 3 6: min 1 and 2.
.target trn2
.dialect extended
.constant x float32 [1, 6] 1 5 4 2 3 6
.queue qIn sp 8
.dma qIn 0 8 x+0[1,24][24,1] -> SB+0x1000[1,262144][24,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    TENSOR_REDUCE S[8]>=16 op=MIN dim=X src=fp32@0x1000[2,1,1,1][3,2,1,1] dst=fp32@0x2000[1,1,1,1][2,1,1,1] channels=1
