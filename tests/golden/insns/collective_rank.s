# The rank that runs the program, 0 where it is alone, goes into one element of SBUF.
.target trn2
.dialect extended
.constant g int32 [1, 1] 0

.engine pool
    COLLECTIVE semaphore=107 sem_increment=16 kind=RANK reduce=ADD stream=0 channel=0 turn=0 groups_rows=1 groups_columns=1 src_elem_size=4 dst_elem_size=4 src_pattern=[1,1,1,1][1,1,1,1] dst_pattern=[1,1,1,1][1,1,1,1] src_var_id=%g src_var_offset=0 src_shape_reg=0 dst_var_id=%SB dst_var_offset=8192 dst_shape_reg=0 groups_var_id=%g groups_var_offset=0 groups_shape_reg=0 counts_addr_imm=0x0 counts_shape_reg=0 dtype=INT32
