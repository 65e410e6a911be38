# (2x + 1)^2: 9 and 25, sum 34 in the register.
.target trn3
.dialect extended
.constant x float32 [1, 2] 1 2
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine act
    ACTIVATE2 S[8]>=16 SQUARE op0=MULTIPLY op1=ADD imm=2.0,1.0,0.0 imm_src=INSTRUCTION,INSTRUCTION,INSTRUCTION immediate_dtype=FLOAT32 src=fp32@0x1000[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][2,1,1,1,1] channels=1 reduce_command=RESET_REDUCE reduce_op=ADD
# (1 - (10 - x))^2: 64 and 49; the register takes up 113: 147
    ACTIVATE2 SQUARE op0=SUBTRACT op1=SUBTRACT imm=10.0,1.0,0.0 imm_src=INSTRUCTION,INSTRUCTION,INSTRUCTION immediate_dtype=FLOAT32 src=fp32@0x1000[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2008[1,1,1,1,1][2,1,1,1,1] channels=1 reduce_command=REDUCE reduce_op=ADD reverse0=1 reverse1=1
    ACTIVATION_READ_ACCUMULATOR dst=fp32@0x2010[1,1,1,1,1][1,1,1,1,1] channels=1
