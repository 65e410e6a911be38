# bfloat16 + fp16 into fp32, at two partitions.
.target trn2
.constant x bfloat16 [2, 2] 1 2 3 4
.constant y float16 [2, 2] 0.5 0.25 -3 8
.queue qIn sp 8
.dma qIn 0 8 x+0[1,4][4,2] -> SB+0x1000[1,262144][4,2]
.dma qIn 1 8 y+0[1,4][4,2] -> SB+0x1100[1,262144][4,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine dve
    TENSOR_TENSOR S[8]>=32 op=ADD src0=bfloat16@0x1000[1,1,1][2,1,1] src1=fp16@0x1100[1,1,1][2,1,1] dst=fp32@0x2000[1,1,1][2,1,1] channels=2
