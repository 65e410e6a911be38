# A table load touches no data; it waits and signals like any word.
.target trn2

.engine act
    ACT_TABLE_LOAD S[5]++@complete table_sel=0
    ACTIVATE S[5]>=1 S[6]++@complete SQUARE src=fp32@0x1000[1,1,1][1,1,1] dst=fp32@0x2000[1,1,1][1,1,1] channels=1 scale=1.0 imm=0.0 accumulator_cmd=IDLE
