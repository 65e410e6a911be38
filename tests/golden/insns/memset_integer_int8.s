# The low eight bits of 0x1ff are -1.
.target trn2
.dialect extended

.engine dve
    MEMSET value=i511 dst=int8@0x1000[1,1,1,1][2,1,1,1] count=2 channels=1
