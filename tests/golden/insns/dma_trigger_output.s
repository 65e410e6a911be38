# Load, store, and the semaphores of both: 16 each, one per ring.
.target trn2
.output y float32 [2, 2]
.constant x float32 [2, 2] 1 2 3 4
.queue qOut act 24
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,2] -> SB+0x1000[1,262144][8,2]
.dma qOut 5 25 SB+0x1000[1,262144][8,2] -> y+0[1,8][8,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine act
    PSEUDO_DMA_TRIGGER S[8]>=16 qOut block_id=5
