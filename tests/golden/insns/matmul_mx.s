# Ones (0x38) in 32 partitions of 4: 128 products. Scales: 2^(127-127) = 1 for the weights, 2^(128-127) = 2 for the
# moving tile: 256. Then 256 is added to it.
.target trn3
.dialect extended
.constant w uint8 [32, 4] 0x38
.constant x uint8 [32, 4] 0x38
.constant a uint8 [4, 1] 127
.constant b uint8 [4, 1] 128
.queue qIn sp 8
.dma qIn 0 8 w+0[1,4][4,32] -> SB+0x1000[1,262144][4,32]
.dma qIn 1 8 x+0[1,4][4,32] -> SB+0x1010[1,262144][4,32]
.dma qIn 2 8 a+0[1,1][1,4] -> SB+0x1020[1,262144][1,4]
.dma qIn 3 8 b+0[1,1][1,4] -> SB+0x1021[1,262144][1,4]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1
    PSEUDO_DMA_TRIGGER qIn block_id=2
    PSEUDO_DMA_TRIGGER qIn block_id=3

.engine pe
    MATMUL_MX S[8]>=64 stationary=fp8e4fn_x4@0x1000[1,1,1,1,1][1,1,1,1,1] stationary_scale=uint8@0x1020[1,1,1,1,1][1,1,1,1,1] src=fp8e4fn_x4@0x1010[1,1,1,1,1][1,1,1,1,1] src_scale=uint8@0x1021[1,1,1,1,1][1,1,1,1,1] dst=fp32@0x2000000[1,1,1,1,1][1,1,1,1,1] channels=32 dst_channels=1 scale_channels=4
    MATMUL_MX stationary=fp8e4fn_x4@0x1000[1,1,1,1,1][1,1,1,1,1] stationary_scale=uint8@0x1020[1,1,1,1,1][1,1,1,1,1] src=fp8e4fn_x4@0x1010[1,1,1,1,1][1,1,1,1,1] src_scale=uint8@0x1021[1,1,1,1,1][1,1,1,1,1] dst=fp32@0x2000004[1,1,1,1,1][1,1,1,1,1] channels=32 dst_channels=1 scale_channels=4
    MATMUL_MX S[5]++@complete stationary=fp8e4fn_x4@0x1000[1,1,1,1,1][1,1,1,1,1] stationary_scale=uint8@0x1020[1,1,1,1,1][1,1,1,1,1] src=fp8e4fn_x4@0x1010[1,1,1,1,1][1,1,1,1,1] src_scale=uint8@0x1021[1,1,1,1,1][1,1,1,1,1] dst=fp32@0x2000004[1,1,1,1,1][1,1,1,1,1] channels=32 dst_channels=1 scale_channels=4 accumulate=1
