# Two values of different size, little-endian, into partitions 0 and 2.
.target trn2

.engine sp
    WRITE data=0x1122334455667788,0xffab size=8,1 dst=0x2000001000,0x2000081003
