# Registers 7 and 9 take 3 and -2 from SBUF; LE 0 holds for the second only. A loop of three turns counts a tile down
# through the register: 3, 2, 1 branch back, 0 goes on.
.target trn2
.dialect extended
.constant n int32 [1, 2] 3 -2
.queue qIn sp 8
.dma qIn 0 8 n+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    NOP S[8]>=16 cycle=0
    REGISTER_LOAD register=7 src=int32@0x1000[1,1,1,1,1][1,1,1,1,1] channels=1
    REGISTER_LOAD register=9 src=int32@0x1004[1,1,1,1,1][1,1,1,1,1] channels=1
    COMPARE_BRANCH cmp_op=LE dtype=int32 cmp0=$R[7] cmp1=0 label_id=%bad
    COMPARE_BRANCH cmp_op=LE dtype=int32 cmp0=$R[9] cmp1=0 label_id=%loop
bad:
    NOP S[5]++@complete cycle=0
loop:
    NOP S[6]++@complete cycle=0
    TENSOR_SCALAR ops=ADD,BYPASS imm=i-1,0.0 imm_src=INSTRUCTION,INSTRUCTION src=int32@0x1000[1,1,1][1,1,1] dst=int32@0x1000[1,1,1][1,1,1] channels=1
    REGISTER_LOAD register=7 src=int32@0x1000[1,1,1,1,1][1,1,1,1,1] channels=1
    COMPARE_BRANCH cmp_op=NE dtype=int32 cmp0=$R[7] cmp1=0 label_id=%loop
