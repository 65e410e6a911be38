# x + 1 = 2 3 4, summed as it goes: 2 5 9; from 10 on: 12 15 19.
.target trn2
.dialect extended
.constant x float32 [1, 3] 1 2 3
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,1] -> SB+0x1000[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    TENSOR_SCALAR_CUMULATIVE S[8]>=16 op0=ADD imm=1.0,0.0 imm_src=INSTRUCTION,INSTRUCTION immediate0_dtype=FLOAT32 src=fp32@0x1000[1,1,1,1,1][3,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][3,1,1,1,1] channels=1 reduce_command=RESET_REDUCE reduce_op=ADD
    TENSOR_SCALAR_CUMULATIVE op0=ADD imm=1.0,10.0 imm_src=INSTRUCTION,INSTRUCTION immediate0_dtype=FLOAT32 src=fp32@0x1000[1,1,1,1,1][3,1,1,1,1] dst=fp32@0x200c[1,1,1,1,1][3,1,1,1,1] channels=1 reduce_command=LOAD_REDUCE reduce_op=ADD
