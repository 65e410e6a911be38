# Maxima of two inner dimensions, sign changed. Tile [2][2][2]: max(1,-2,3,0) = 3, max(-4,-5,-6,-7) = -4.
.target trn2
.constant x float32 [1, 8] 1 -2 3 0 -4 -5 -6 -7
.queue qIn sp 8
.dma qIn 0 8 x+0[1,32][32,1] -> SB+0x1000[1,262144][32,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    TENSOR_REDUCE S[8]>=16 op=MAX dim=XY negated=1 src=fp32@0x1000[1,2,4,1][2,2,2,1] dst=fp32@0x2000[1,1,1,1][2,1,1,1] channels=1
