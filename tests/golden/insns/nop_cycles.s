# The number of cycles costs time and changes nothing else.
.target trn2

.engine pe
    NOP S[5]++@complete cycle=1000
