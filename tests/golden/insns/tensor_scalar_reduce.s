# 2x, summed into the register: 2 + 4 + 6 = 12, stored with its sign changed. Then from 100 on: 112.
.target trn2
.dialect extended
.constant x float32 [1, 3] 1 2 3
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,1] -> SB+0x1000[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    TENSOR_SCALAR_REDUCE S[8]>=16 op0=MULTIPLY imm=2.0,0.0 imm_src=INSTRUCTION,INSTRUCTION immediate0_dtype=FLOAT32 src=fp32@0x1000[1,1,1,1,1][3,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][3,1,1,1,1] channels=1 reduce_command=RESET_REDUCE reduce_op=ADD reduce_res=fp32@0x2010[1,1,1,1,1][1,1,1,1,1] negate=1
    TENSOR_SCALAR_REDUCE op0=MULTIPLY imm=2.0,100.0 imm_src=INSTRUCTION,INSTRUCTION immediate0_dtype=FLOAT32 src=fp32@0x1000[1,1,1,1,1][3,1,1,1,1] dst=fp32@0x2020[1,1,1,1,1][3,1,1,1,1] channels=1 reduce_command=LOAD_REDUCE reduce_op=ADD reduce_res=fp32@0x2030[1,1,1,1,1][1,1,1,1,1]
