# A step of 0 on the HBM side repeats a row in every partition.
.target trn2
.constant x float32 [2] 1.5 -2
.queue qIn act 8
.dma qIn 0 12 x+0[1,0][8,128] -> SB+0x1000[1,262144][8,128]

.engine act
    PSEUDO_DMA_TRIGGER qIn block_id=0
