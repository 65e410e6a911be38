# exp(x - 1) for 1 and 2: 1 and e; their sum.
.target trn3
.dialect extended
.constant x float32 [1, 2] 1 2
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    EXPONENTIAL S[8]>=16 imm=1.0,0.0 imm_src=INSTRUCTION,INSTRUCTION immediate0_dtype=FLOAT32 src=fp32@0x1000[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][2,1,1,1,1] channels=1 reduce_command=RESET_REDUCE reduce_op=ADD reduce_res=fp32@0x2010[1,1,1,1,1][1,1,1,1,1]
