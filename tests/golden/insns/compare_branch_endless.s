# A word that branches to itself never ends; the limit of steps does.
.target trn2

.engine sp
here:
    COMPARE_BRANCH cmp_op=ALWAYS label_id=%here
