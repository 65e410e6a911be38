# Places 10 to 13; 11 <= place < 13 keeps the second and third. The greatest of -1 2 3 -1 is 3.
.target trn2
.dialect extended
.constant x float32 [1, 4] 1 2 3 4
.constant a float32 [1, 1] 11
.constant b float32 [1, 1] 13
.queue qIn sp 8
.dma qIn 0 8 x+0[1,16][16,1] -> SB+0x1000[1,262144][16,1]
.dma qIn 1 8 a+0[1,4][4,1] -> SB+0x1100[1,262144][4,1]
.dma qIn 2 8 b+0[1,4][4,1] -> SB+0x1110[1,262144][4,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1
    PSEUDO_DMA_TRIGGER qIn block_id=2

.engine dve
    RANGE_SELECT S[8]>=48 op0=GREATER_EQUAL op1=LESS bound0=fp32@0x1100 bound1=fp32@0x1110 start=10 fill=-1.0 imm=0.0,0.0 imm_src=INSTRUCTION,INSTRUCTION immediate0_dtype=FLOAT32 src=fp32@0x1000[1,1,1,1,1][4,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][4,1,1,1,1] channels=1 reduce_command=RESET_REDUCE reduce_op=MAX reduce_res=fp32@0x2010[1,1,1,1,1][1,1,1,1,1]
