# A race: the Vector engine waits for the first of two loads and reads both tiles.
#
#     neurontools check examples/race.s --tool racecheck
#
# The loads are on two queues, so the first one being over says nothing about the second. Which one wins is up to the
# schedule: this run may well give the right result. The check finds the pair in any run.
.target trn2
.name race
.constant a float32 [128, 64] 1.0
.constant b float32 [128, 64] 2.0
.output y float32 [128, 64]
.queue  qA   sp   8
.queue  qB   pool 24
.queue  qOut act  40
.dma    qA   0  8 a+0[1,256][256,128]            -> SB+0x4000[1,262144][256,128]
.dma    qB   0 24 b+0[1,256][256,128]            -> SB+0x5000[1,262144][256,128]
.dma    qOut 0 40 SB+0x6000[1,262144][256,128]   -> y+0[1,256][256,128]

.engine sp
    SET_ORDERING_MODE ordering_mode=relaxed
    PSEUDO_DMA_TRIGGER qA block_id=0

.engine pool
    SET_ORDERING_MODE ordering_mode=relaxed
    PSEUDO_DMA_TRIGGER qB block_id=0

.engine dve
    SET_ORDERING_MODE ordering_mode=relaxed
    TENSOR_TENSOR S[8]>=16 S[6]++@complete op=ADD src0=fp32@0x4000[1,1,1][64,1,1] src1=fp32@0x5000[1,1,1][64,1,1] dst=fp32@0x6000[1,1,1][64,1,1] channels=128

.engine act
    SET_ORDERING_MODE ordering_mode=relaxed
    PSEUDO_DMA_TRIGGER S[6]>=1 qOut block_id=0
    NOP S[40]>=16 cycle=0
