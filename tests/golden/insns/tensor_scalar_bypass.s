# BYPASS as second operator leaves the first one's result: max(x, 0).
.target trn2
.constant x float32 [1, 3] -1 2 -0.5
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,1] -> SB+0x1000[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine act
    TENSOR_SCALAR S[8]>=16 ops=MAX,BYPASS imm=0.0,0.0 imm_src=INSTRUCTION,INSTRUCTION src=fp32@0x1000[1,1,1][3,1,1] dst=bfloat16@0x2000[1,1,1][3,1,1] channels=1
