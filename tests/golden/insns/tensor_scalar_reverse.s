# Reversed operands stand on the left: 10 - x, then 6 / that: 6/9 rounded to fp32 (0x3f2aaaab), 6/8, 6/4.
.target trn2
.dialect extended
.constant x float32 [1, 3] 1 2 6
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,1] -> SB+0x1000[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    TENSOR_SCALAR S[8]>=16 ops=SUBTRACT,DIVIDE imm=10.0,6.0 imm_src=INSTRUCTION,INSTRUCTION src=fp32@0x1000[1,1,1][3,1,1] dst=fp32@0x2000[1,1,1][3,1,1] channels=1 reverse0=1 reverse1=1
    TENSOR_SCALAR ops=SUBTRACT,BYPASS imm=10.0,0.0 imm_src=INSTRUCTION,INSTRUCTION src=fp32@0x1000[1,1,1][3,1,1] dst=fp32@0x2010[1,1,1][3,1,1] channels=1
