# -1 < 1 as int32; 0xffffffff > 1 as uint32. The register is loaded from SBUF: 0x2000000000 + 0x1000.
.target trn2
.dialect extended

.engine sp
    WRITE data=0xffffffff size=4 dst=0x2000001000
    TENSOR_LOAD addr=uint32@0x2000001000[1,1][1,1] data=$R[7]
    COMPARE_BRANCH cmp_op=LT dtype=uint32 cmp0=$R[7] cmp1=1 label_id=%end
    COMPARE_BRANCH cmp_op=LT dtype=int32 cmp0=$R[7] cmp1=1 label_id=%less
    NOP S[5]++@complete cycle=0
less:
    NOP S[6]++@complete cycle=0
end:
    NOP S[7]++@complete cycle=0
