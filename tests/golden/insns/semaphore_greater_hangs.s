# 2 is not greater than 2.
.target trn2

.engine act
    NOP S[4]++@complete cycle=0
    NOP S[4]++@complete cycle=0

.engine dve
    NOP S[4]>1 S[5]++@complete cycle=0
    NOP S[4]>2 S[5]++@complete cycle=0
