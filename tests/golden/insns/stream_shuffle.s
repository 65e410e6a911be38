# The mask works in each quadrant: 0 takes 1, 1 takes 0, 2 is left alone (255), 3 takes 2, 4 to 31 are left alone.
.target trn2
.dialect extended
.constant a float32 [3, 1] 1 2 3
.constant b float32 [3, 1] 10 20 30
.constant y float32 [3, 1] -7
.queue qIn sp 8
.dma qIn 0 8 a+0[1,4][4,3] -> SB+0x1000[1,262144][4,3]
.dma qIn 1 8 b+0[1,4][4,3] -> SB+0x801000[1,262144][4,3]
.dma qIn 2 8 y+0[1,4][4,3] -> SB+0x2000[1,262144][4,3]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1
    PSEUDO_DMA_TRIGGER qIn block_id=2

.engine dve
    STREAM_SHUFFLE S[8]>=48 mask=1,0,255,2,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255 src=fp32@0x1000[1,1,1,1,1][1,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][1,1,1,1,1] channels=64 dst_channels=64
