# 4 elements do not fit 3.
.target trn2

.engine act
    COPY src=fp32@0x1000[1,1,1,1][4,1,1,1] dst=fp32@0x3000[1,1,1,1][3,1,1,1] channels=1
