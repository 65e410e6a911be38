# An engine that polls what nobody writes: it moves for ever, and never gets on.
#
#     neurontools run examples/livelock.s
#
# The GpSimd engine reads a flag from SBUF until it is not 0, and the one that would set it waits for a semaphore that only the
# GpSimd engine raises. After one turn the machine is in the state it was in before, so that no later turn can differ.
.target trn2
.name livelock
.dialect extended
.constant zero int32 [1, 1] 0
.queue qIn sp 8
.dma   qIn 0 8 zero+0[1,4][4,1] -> SB+0x1000[1,262144][4,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    NOP S[8]>=16 cycle=0
poll:
    REGISTER_LOAD register=7 src=int32@0x1000[1,1,1,1,1][1,1,1,1,1] channels=1
    COMPARE_BRANCH cmp_op=EQ dtype=int32 cmp0=$R[7] cmp1=0 label_id=%poll
    NOP S[4]++@complete cycle=0

.engine dve
    EVENT_SEMAPHORE S[4]>=1 setter=0
    COPY src=int32@0x2000[1,1,1,1][1,1,1,1] dst=int32@0x1000[1,1,1,1][1,1,1,1] channels=1
