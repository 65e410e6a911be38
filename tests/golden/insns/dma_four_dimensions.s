# HBM to HBM: [2][2][2] bytes with the two outer dimensions exchanged: offsets 0 1 | 4 5 | 2 3 | 6 7.
.target trn2
.constant x uint8 [8] 10 11 12 13 14 15 16 17
.output y uint8 [8]
.queue qIn pool 8
.dma qIn 0 8 x+0[1,4,2,1][2,2,2,1] -> y+0[1,2,4,1][2,2,2,1]

.engine pool
    PSEUDO_DMA_TRIGGER qIn block_id=0
