# gen2 has no transpose mode: refused.
.target trn1

.engine pe
    LDWEIGHTS transpose_mode=ENABLED src=bfloat16@0x4000[1,1,1][1,1,1] 1*1
