# (x * 2) + 0.5
.target trn2
.constant x float32 [1, 3] 1 -2 3
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,1] -> SB+0x1000[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    TENSOR_SCALAR S[8]>=16 ops=MULTIPLY,ADD imm=2.0,0.5 imm_src=INSTRUCTION,INSTRUCTION src=fp32@0x1000[1,1,1][3,1,1] dst=fp32@0x2000[1,1,1][3,1,1] channels=1
