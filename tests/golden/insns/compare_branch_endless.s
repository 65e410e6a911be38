# A word that branches to itself never ends: the state is there again after one turn.
.target trn2

.engine sp
here:
    COMPARE_BRANCH cmp_op=ALWAYS label_id=%here
