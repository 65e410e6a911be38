# Four registers, 2 x 2: inner step 1, outer step 3 elements of 4 bytes: words 0 1 3 4 of partition 1
# (0x2000000000 + 0x40000 + 0x1000).
.target trn2
.constant x uint32 [1, 5] 10 11 12 13 14
.queue qIn sp 8
.dma qIn 0 8 x+0[1,20][20,1] -> SB+0x41000[1,262144][20,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pe
    NOP S[8]>=16 cycle=0
    TENSOR_LOAD addr=uint32@0x2000041000[1,3][2,2] data=$R[1],$R[9],$R[3],$R[200]
