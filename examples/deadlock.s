# Two engines that wait for each other: neither signal is ever given.
#
#     neurontools run examples/deadlock.s
#
# The Vector engine raises semaphore 6 only after the Scalar engine has raised 4, and the Scalar engine the other way
# round. The store waits behind them. The emulator stops when nothing can move, and says who waits for whom.
.target trn2
.name deadlock
.constant x float32 [128, 64] 1.0
.output y float32 [128, 64]
.queue  qIn  sp   8
.queue  qOut pool 24
.dma    qIn  0  8 x+0[1,256][256,128]            -> SB+0x4000[1,262144][256,128]
.dma    qOut 0 24 SB+0x5000[1,262144][256,128]   -> y+0[1,256][256,128]

.engine sp
    SET_ORDERING_MODE ordering_mode=relaxed
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    SET_ORDERING_MODE ordering_mode=relaxed
    EVENT_SEMAPHORE S[8]>=16 setter=0
    COPY S[4]>=1 S[6]++@complete src=fp32@0x4000[1,1,1,1][64,1,1,1] dst=fp32@0x5000[1,1,1,1][64,1,1,1] channels=128

.engine act
    SET_ORDERING_MODE ordering_mode=relaxed
    COPY S[6]>=1 S[4]++@complete src=fp32@0x5000[1,1,1,1][64,1,1,1] dst=fp32@0x6000[1,1,1,1][64,1,1,1] channels=128

.engine pool
    SET_ORDERING_MODE ordering_mode=relaxed
    PSEUDO_DMA_TRIGGER S[4]>=1 qOut block_id=0
    NOP S[24]>=16 cycle=0
