# 5 + 1*i + 10*j + 100*p, i and j of 2.
.target trn2
.dialect extended

.engine pool
    IOTA offset=5 channel_multiplier=100 step0=1 step1=10 step2=0 step3=0 count0=2 count1=2 count2=1 count3=1 dst=int32@0x2000[1,1,1,1,1][4,1,1,1,1] channels=2
