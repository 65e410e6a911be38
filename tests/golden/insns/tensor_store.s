# Two immediates, two elements of 4 bytes apart.
.target trn2

.engine dve
    TENSOR_STORE S[5]++@complete dtype=UINT32 store_kind=1 count0=2 count1=1 address=0x2000001000 step0=2 data=1,0,0,0,4,3,2,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0
