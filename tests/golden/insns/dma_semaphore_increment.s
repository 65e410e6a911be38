# The increment of a d4 word is its own: 5 and 5 on one semaphore make 10.
.target trn2
.constant x uint8 [2] 1 2
.queue qDyn sp 8

.engine sp
    PSEUDO_DMA_DIRECT2D dge_op=DIRECT2D semaphore=8 sem_increment=5 src_elem_size=1 dst_elem_size=1 src_pattern=[1,1][2,1] dst_pattern=[2,1][2,1] src_var_id=%x src_var_offset=0 src_shape_reg=0 dst_var_id=%SB dst_var_offset=4096 dst_shape_reg=0
    PSEUDO_DMA_DIRECT2D dge_op=DIRECT2D semaphore=8 sem_increment=5 src_elem_size=1 dst_elem_size=1 src_pattern=[0,1][2,1] dst_pattern=[2,1][2,1] src_var_id=%x src_var_offset=1 src_shape_reg=0 dst_var_id=%SB dst_var_offset=4097 dst_shape_reg=0
