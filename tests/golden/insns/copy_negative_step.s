# Reads from the last element down: 4 3 2 1.
.target trn2
.constant x float32 [1, 4] 1 2 3 4
.queue qIn sp 8
.dma qIn 0 8 x+0[1,16][16,1] -> SB+0x1000[1,262144][16,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    COPY S[8]>=16 src=fp32@0x100c[-1,1,1,1][4,1,1,1] dst=fp32@0x2000[1,1,1,1][4,1,1,1] channels=1
