# Vector and Scalar have ports to PSUM: PSUM to SBUF and back, partition 1 at stride 0x4000.
.target trn2
.constant x float32 [2, 2] 1 2 3 4
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,2] -> SB+0x1000[1,262144][8,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    COPY S[8]>=16 S[5]++@complete src=fp32@0x1000[1,1,1,1][2,1,1,1] dst=fp32@0x2000800[1,1,1,1][2,1,1,1] channels=2

.engine act
    COPY S[5]>=1 src=fp32@0x2000800[1,1,1,1][1,1,1,1] dst=fp32@0x2000[1,1,1,1][1,1,1,1] channels=2
