# All four dimensions, one result: 1 + ... + 8 = 36, and as fp16.
.target trn2
.constant x float32 [1, 8] 1 2 3 4 5 6 7 8
.queue qIn sp 8
.dma qIn 0 8 x+0[1,32][32,1] -> SB+0x1000[1,262144][32,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    TENSOR_REDUCE S[8]>=16 op=ADD dim=XYZW src=fp32@0x1000[1,2,4,4][2,2,1,2] dst=fp16@0x2000[1,1,1,1][1,1,1,1] channels=1
