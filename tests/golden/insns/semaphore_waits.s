# The three comparisons of a wait. Pool counts to 3, one at a time, and holds at 2 until Vector has seen exactly 2.
.target trn2

.engine pool
    NOP S[4]++@complete cycle=0
    NOP S[4]++@complete cycle=0
    NOP S[5]>=1 S[4]++@complete cycle=0

.engine dve
    NOP S[4]==2 S[5]++@complete cycle=0

.engine act
    NOP S[4]>2 S[6]++@complete cycle=0

.engine sp
    NOP S[4]>=3 S[6]++@complete cycle=0
