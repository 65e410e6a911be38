# Sums over 3 partitions, and their average; maxima.
.target trn2
.dialect extended
.constant x float32 [4, 2] 1 2 3 4 5 9 7 -7
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,4] -> SB+0x1000[1,262144][8,4]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    TENSOR_PARTITION_REDUCE S[8]>=16 op=ADD src=fp32@0x1000[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2000[1,1,1,1,1][2,1,1,1,1] channels=3 dst_channels=1
    TENSOR_PARTITION_REDUCE op=ADD average=1 src=fp32@0x1000[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2008[1,1,1,1,1][2,1,1,1,1] channels=4 dst_channels=1
    TENSOR_PARTITION_REDUCE op=MAX src=fp32@0x1000[1,1,1,1,1][2,1,1,1,1] dst=fp32@0x2010[1,1,1,1,1][2,1,1,1,1] channels=4 dst_channels=1
