# A read past the end of a partition: the emulator faults, and names engine, word, line, operand and range.
#
#     neurontools run examples/out_of_bounds.s
#
# A partition of a trn2 core ends at byte 0x38000; 64 values of 4 bytes from 0x37ff0 end 0xf0 bytes behind it.
.target trn2
.name out_of_bounds
.output y float32 [128, 64]
.queue  qOut act 8
.dma    qOut 0 8 SB+0x5000[1,262144][256,128] -> y+0[1,256][256,128]

.engine dve
    SET_ORDERING_MODE ordering_mode=relaxed
    MEMSET dst=fp32@0x4000[1,1,1,1][64,1,1,1] count=64 channels=128
    TENSOR_TENSOR S[6]++@complete op=ADD src0=fp32@0x4000[1,1,1][64,1,1] src1=fp32@0x37ff0[1,1,1][64,1,1] dst=fp32@0x5000[1,1,1][64,1,1] channels=128

.engine act
    SET_ORDERING_MODE ordering_mode=relaxed
    PSEUDO_DMA_TRIGGER S[6]>=1 qOut block_id=0
    NOP S[8]>=16 cycle=0
