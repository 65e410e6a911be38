# To integers: nearest even, then saturation (inferred: nothing public says, isa.md 16); NaN gives 0.
.target trn2
.constant x float32 [1, 8] 0.5 1.5 2.5 -2.5 127.5 300 -300 nan
.queue qIn sp 8
.dma qIn 0 8 x+0[1,32][32,1] -> SB+0x1000[1,262144][32,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    CAST S[8]>=16 src=fp32@0x1000[1,1,1,1][8,1,1,1] dst=int8@0x2000[1,1,1,1][8,1,1,1] channels=1
    CAST src=fp32@0x1000[1,1,1,1][8,1,1,1] dst=uint8@0x2010[1,1,1,1][8,1,1,1] channels=1
