# Partitions 32, 64 and 96 to 0: one word moves 32 partitions. Element = number of its partition.
.target trn2
.constant a float32 [2, 1] 32 33
.constant b float32 [2, 1] 64 65
.constant c float32 [2, 1] 96 97
.queue qIn sp 8
.dma qIn 0 8 a+0[1,4][4,2] -> SB+0x801000[1,262144][4,2]
.dma qIn 1 8 b+0[1,4][4,2] -> SB+0x1001000[1,262144][4,2]
.dma qIn 2 8 c+0[1,4][4,2] -> SB+0x1801000[1,262144][4,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1
    PSEUDO_DMA_TRIGGER qIn block_id=2

.engine dve
# 0x801000 = 32 * 0x40000 + 0x1000
    COPY S[8]>=48 src=fp32@0x801000[1,1,1,1][1,1,1,1] dst=fp32@0x2000[1,1,1,1][1,1,1,1] channels=2
    COPY src=fp32@0x1001000[1,1,1,1][1,1,1,1] dst=fp32@0x2004[1,1,1,1][1,1,1,1] channels=2
    COPY src=fp32@0x1801000[1,1,1,1][1,1,1,1] dst=fp32@0x2008[1,1,1,1][1,1,1,1] channels=2
# and back to partition 96
    COPY S[5]++@complete src=fp32@0x801000[1,1,1,1][1,1,1,1] dst=fp32@0x1802000[1,1,1,1][1,1,1,1] channels=2
