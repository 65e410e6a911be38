# x where the predicate holds, else -10; the greatest of 1 -10 3, folded into the register.
.target trn2
.dialect extended
.constant p uint8 [1, 3] 1 0 1
.constant x float32 [1, 3] 1 2 3
.queue qIn sp 8
.dma qIn 0 8 p+0[1,3][3,1] -> SB+0x1000[1,262144][3,1]
.dma qIn 1 8 x+0[1,12][12,1] -> SB+0x1100[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine dve
    SELECT_REDUCE S[8]>=32 predicate=uint8@0x1000[1,1,1,1,1][3,1,1,1,1] imm=-10.0,0.0 imm_src=INSTRUCTION,INSTRUCTION immediate0_dtype=FLOAT32 src=fp32@0x1100[1,1,1,1,1][3,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][3,1,1,1,1] channels=1 reduce_command=RESET_REDUCE reduce_op=MAX reduce_res=fp32@0x2010[1,1,1,1,1][1,1,1,1,1]
