# A barrier with a core that does not exist.
.target trn2
.dialect extended

.engine sp
    PSEUDO_CORE_BARRIER semaphore=9 id=1
