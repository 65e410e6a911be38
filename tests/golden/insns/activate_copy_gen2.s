# Before gen3 the copy goes through fp32 (hardware.md 3.5): a bfloat16 stays what it is, and -0 too.
.target trn1
.constant x bfloat16 [1, 3] 1.5 -0.0 -3
.queue qIn sp 8
.dma qIn 0 8 x+0[1,6][6,1] -> SB+0x1000[1,262144][6,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine act
    ACTIVATE S[8]>=16 COPY src=bfloat16@0x1000[1,1,1][3,1,1] dst=fp32@0x2000[1,1,1][3,1,1] channels=1 scale=1.0 imm=0.0 accumulator_cmd=IDLE
