# Tensor reads SBUF and writes PSUM (hardware.md 2.4).
.target trn2

.engine pe
    LDWEIGHTS transpose_mode=DISABLED src=fp16@0x2000000[1,1,1][1,1,1] 1*1
