# 1.5 has an exact bfloat16; partition 1 is outside of the one channel.
.target trn2
.dialect extended

.engine pool
    MEMSET value=1.5 dst=bfloat16@0x1002[1,1,1,1][3,1,1,1] count=3 channels=1
