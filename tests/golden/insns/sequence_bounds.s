# Segments 0 | 1 1 | 2: begin and exclusive end of each; padding (segment 0) gives (n, -1).
.target trn2
.dialect extended
.constant x float32 [1, 4] 0 1 1 2
.queue qIn sp 8
.dma qIn 0 8 x+0[1,16][16,1] -> SB+0x1000[1,262144][16,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    SEQUENCE_BOUNDS S[8]>=16 src=fp32@0x1000[1,1,1,1,1][4,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][8,1,1,1,1] channels=1
