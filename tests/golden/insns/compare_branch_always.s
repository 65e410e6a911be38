# A branch over the second word: only the third one signals.
.target trn2

.engine dve
    COMPARE_BRANCH cmp_op=ALWAYS label_id=%over
    NOP S[5]++@complete cycle=0
over:
    NOP S[6]++@complete cycle=0
