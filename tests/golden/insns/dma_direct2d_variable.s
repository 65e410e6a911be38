# d4 by variable: two rows of 8 bytes to partitions 0 and 1. Variable 0 is SBUF.
.target trn2
.constant x float32 [2, 2] 1 2 3 4
.queue qDyn sp 8

.engine sp
    PSEUDO_DMA_DIRECT2D dge_op=DIRECT2D semaphore=8 sem_increment=16 src_elem_size=8 dst_elem_size=8 src_pattern=[8,1][2,1] dst_pattern=[262144,1][2,1] src_var_id=%x src_var_offset=0 src_shape_reg=0 dst_var_id=%SB dst_var_offset=4096 dst_shape_reg=0
