# The function copy takes neither scale nor bias, and from gen3 on moves bits: a NaN keeps its payload.
.target trn2
.constant x uint32 [1, 2] 0x7fc12345 0x3f800000
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine act
    ACTIVATE S[8]>=16 COPY src=fp32@0x1000[1,1,1][2,1,1] dst=fp32@0x2000[1,1,1][2,1,1] channels=1 scale=1.0 imm=0.0 accumulator_cmd=IDLE
