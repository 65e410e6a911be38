# COPY moves bits: a signalling NaN and a negative zero stay as they are, read as int32 on both sides.
.target trn2
.constant x uint32 [1, 2] 0x7f800001 0x80000000
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine act
    COPY S[8]>=16 src=fp32@0x1000[1,1,1,1][2,1,1,1] dst=fp32@0x2000[1,1,1,1][2,1,1,1] channels=1
