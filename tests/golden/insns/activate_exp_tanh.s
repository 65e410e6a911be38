# exp(0) = 1, exp(1) = 2.718281828; tanh(0.5) = 0.46211716 (tables of the functions, to a millionth).
.target trn2
.constant x float32 [1, 2] 0 1
.constant y float32 [1, 2] 0.5 -0.5
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]
.dma qIn 1 8 y+0[1,8][8,1] -> SB+0x1100[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine act
    ACT_TABLE_LOAD table_sel=0
    ACTIVATE S[8]>=32 EXP src=fp32@0x1000[1,1,1][2,1,1] dst=fp32@0x2000[1,1,1][2,1,1] channels=1 scale=1.0 imm=0.0 accumulator_cmd=IDLE
    ACTIVATE TANH src=fp32@0x1100[1,1,1][2,1,1] dst=fp32@0x2010[1,1,1][2,1,1] channels=1 scale=1.0 imm=0.0 accumulator_cmd=IDLE
