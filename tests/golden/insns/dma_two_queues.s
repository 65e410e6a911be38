# Two queues have semaphores of their own; the store waits for both loads.
.target trn2
.constant x float32 [1] 3
.constant z float32 [1] 4
.output y float32 [2]
.queue qA sp 8
.queue qB pool 24
.queue qOut act 40
.dma qA 0 8 x+0[1][4] -> SB+0x1000[1][4]
.dma qB 0 24 z+0[1][4] -> SB+0x1004[1][4]
.dma qOut 0 40 SB+0x1000[1][8] -> y+0[1][8]

.engine sp
    PSEUDO_DMA_TRIGGER qA block_id=0

.engine pool
    PSEUDO_DMA_TRIGGER qB block_id=0

.engine act
    EVENT_SEMAPHORE S[8]>=16 setter=0 S[24]>=16
    PSEUDO_DMA_TRIGGER qOut block_id=0
