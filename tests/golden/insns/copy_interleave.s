# Two words that write every other element, one with a negative step on the output.
.target trn2
.constant x float32 [1, 4] 1 2 3 4
.queue qIn sp 8
.dma qIn 0 8 x+0[1,16][16,1] -> SB+0x1000[1,262144][16,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    COPY S[8]>=16 src=fp32@0x1000[1,1,1,1][2,1,1,1] dst=fp32@0x2000[2,1,1,1][2,1,1,1] channels=1
    COPY src=fp32@0x1008[1,1,1,1][2,1,1,1] dst=fp32@0x200c[-2,1,1,1][2,1,1,1] channels=1
