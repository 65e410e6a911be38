# Runs of 2 elements from 4, 0 and 2 on.
.target trn2
.dialect extended
.constant x float32 [16, 6] 1 2 3 4 5 6
.constant i uint16 [16, 1] 4 0 2 0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,24][24,16] -> SB+0x1000[1,262144][24,16]
.dma qIn 1 8 i+0[1,2][2,16] -> SB+0x1100[1,262144][2,16]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pool
    LOCAL_GATHER S[8]>=32 src=fp32@0x1000[1,1,1,1,1][6,1,1,1,1] indices=uint16@0x1100[1,1,1,1,1][1,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][6,1,1,1,1] channels=16 run=2 valid=3
