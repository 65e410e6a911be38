# fp32 elements stand at multiples of 4.
.target trn2

.engine dve
    COPY src=fp32@0x1002[1,1,1,1][1,1,1,1] dst=fp32@0x3000[1,1,1,1][1,1,1,1] channels=1
