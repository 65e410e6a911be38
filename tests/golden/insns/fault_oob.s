# A partition of trn2 has 0x38000 bytes; 64 of them from 0x37fe0 leave it by 32. The word before is waited for, so it has its effect.
.target trn2

.engine dve
    MEMSET S[5]++@complete dst=fp32@0x2000[1,1,1,1][1,1,1,1] count=1 channels=1
    TENSOR_TENSOR S[5]>=1 op=ADD src0=fp32@0x1000[1,1,1][16,1,1] src1=fp32@0x37fe0[1,1,1][16,1,1] dst=fp32@0x3000[1,1,1][16,1,1] channels=1
    NOP S[5]++@complete cycle=0
