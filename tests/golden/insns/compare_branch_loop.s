# A loop of three turns: register 2 reads back the semaphore that each turn raises. S[5] of core 0 is read at
# 0x2000000000 (core) + 0x800000000 (its synchronisation window) + 0x2701000 + 4 * 5 (formats.md 7.1).
# 3 turns of 3 words = 9.
.target trn2
.dialect extended

.engine act
loop:
    NOP S[5]++@complete cycle=0
    TENSOR_LOAD addr=uint32@0x2802701014[1,1][1,1] data=$R[2]
    COMPARE_BRANCH cmp_op=LT dtype=int32 cmp0=$R[2] cmp1=3 label_id=%loop
    NOP S[6]++@complete cycle=0
