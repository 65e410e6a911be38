
.target trn2

.engine pe
# The number of cycles costs time and changes nothing else.
    NOP S[5]++@complete cycle=1000
