# The set, increment and decrement registers of S[9] and S[10] (formats.md 7.1): 7 + 5 = 12; -1.
.target trn2

.engine sp
    WRITE data=0x7,0x1 size=4,4 dst=0x2802701424,0x2802701c28
    WRITE data=0x5 size=4 dst=0x2802701824

.engine dve
    NOP S[9]>=12 S[5]++@complete cycle=0
