# MEMSET without a value fills with zeros; the neighbours keep what they had.
.target trn2
.constant x float32 [2, 4] 9
.queue qIn sp 8
.dma qIn 0 8 x+0[1,16][16,2] -> SB+0x1000[1,262144][16,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    MEMSET S[8]>=16 S[5]++@complete dst=fp32@0x1004[1,1,1,1][2,1,1,1] count=2 channels=2
