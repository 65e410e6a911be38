# There are 128 partitions; 64 from the 96th on (96 * 0x40000 = 0x1800000) are too many.
.target trn2

.engine dve
    MEMSET dst=fp32@0x1801000[1,1,1,1][1,1,1,1] count=1 channels=64
