# NE, LE, GE and GT with register 0 = 0: 0 != 0 no, 0 <= 0 yes, 0 >= 1 no, 0 > -1 yes.
.target trn2
.dialect extended

.engine pe
    COMPARE_BRANCH cmp_op=NE dtype=int32 cmp0=$R[0] cmp1=0 label_id=%bad
    COMPARE_BRANCH cmp_op=LE dtype=int32 cmp0=$R[0] cmp1=0 label_id=%next
bad:
    NOP S[5]++@complete cycle=0
next:
    COMPARE_BRANCH cmp_op=GE dtype=int32 cmp0=$R[0] cmp1=1 label_id=%bad
    COMPARE_BRANCH cmp_op=GT dtype=int32 cmp0=$R[0] cmp1=4294967295 label_id=%end
    NOP S[5]++@complete cycle=0
end:
    NOP S[6]++@complete cycle=0
