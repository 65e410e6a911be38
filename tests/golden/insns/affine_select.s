# A causal mask: keep where p - i >= 0.
.target trn2
.dialect extended
.constant x float32 [3, 3] 1 2 3 4 5 6 7 8 9
.queue qIn sp 8
.dma qIn 0 8 x+0[1,12][12,3] -> SB+0x1000[1,262144][12,3]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    AFFINE_SELECT S[8]>=16 op=GREATER_EQUAL offset=0 channel_multiplier=1 step0=-1 step1=0 step2=0 step3=0 count0=3 count1=1 count2=1 count3=1 on_false=-9.0 src=fp32@0x1000[1,1,1,1,1][3,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][3,1,1,1,1] channels=3
