# A wait consumes the event: E[3] is 0 again, E[4], for which nobody waits, stays.
.target trn2

.engine act
    NOP E[3]+@complete cycle=0
    NOP E[4]+@complete cycle=0

.engine dve
    NOP E[3]==1- S[5]++@complete cycle=0
