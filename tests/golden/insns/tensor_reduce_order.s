# Left to right in fp32: 2^24 + 1 = 2^24 (to even), + 1 the same, - 2^24 = 0. Any pairing gives 1 or 2.
.target trn2
.constant x float32 [1, 4] 16777216 1 1 -16777216
.queue qIn sp 8
.dma qIn 0 8 x+0[1,16][16,1] -> SB+0x1000[1,262144][16,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    TENSOR_REDUCE S[8]>=16 op=ADD dim=X src=fp32@0x1000[1,1,1,1][4,1,1,1] dst=fp32@0x2000[1,1,1,1][1,1,1,1] channels=1
