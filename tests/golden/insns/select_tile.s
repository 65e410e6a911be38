# src where the predicate is not zero (any bits but zero), else the other tile.
.target trn2
.dialect extended
.constant p uint8 [1, 4] 1 0 255 0
.constant x float32 [1, 4] 1 2 3 4
.constant y float32 [1, 4] -1 -2 -3 -4
.queue qIn sp 8
.dma qIn 0 8 p+0[1,4][4,1] -> SB+0x1000[1,262144][4,1]
.dma qIn 1 8 x+0[1,16][16,1] -> SB+0x1100[1,262144][16,1]
.dma qIn 2 8 y+0[1,16][16,1] -> SB+0x1200[1,262144][16,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1
    PSEUDO_DMA_TRIGGER qIn block_id=2

.engine dve
    SELECT S[8]>=48 predicate=uint8@0x1000[1,1,1,1,1][4,1,1,1,1] src=fp32@0x1100[1,1,1,1,1][4,1,1,1,1] on_false=fp32@0x1200[1,1,1,1,1][4,1,1,1,1] imm=0.0 dst=fp32@0x2000[1,1,1,1,1][4,1,1,1,1] channels=1
