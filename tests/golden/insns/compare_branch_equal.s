# Registers start at 0, so EQ 0 branches and EQ 1 does not.
.target trn2

.engine pool
    COMPARE_BRANCH cmp_op=EQ dtype=int32 cmp0=$R[0] cmp1=1 label_id=%bad
    COMPARE_BRANCH cmp_op=EQ dtype=int32 cmp0=$R[0] cmp1=0 label_id=%good
bad:
    NOP S[5]++@complete cycle=0
good:
    NOP S[6]++@complete cycle=0
