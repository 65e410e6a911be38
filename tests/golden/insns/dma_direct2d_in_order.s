# Transfers of a queue complete in order: to wait for the second is to have both.
.target trn2
.constant x float32 [2] 5 6
.queue qDyn pool 8

.engine pool
    PSEUDO_DMA_DIRECT2D dge_op=DIRECT2D semaphore=8 sem_increment=16 src_elem_size=4 dst_elem_size=4 src_pattern=[4,1][1,1] dst_pattern=[4,1][1,1] src_var_id=%x src_var_offset=0 src_shape_reg=0 dst_var_id=%SB dst_var_offset=4096 dst_shape_reg=0
    PSEUDO_DMA_DIRECT2D dge_op=DIRECT2D semaphore=9 sem_increment=16 src_elem_size=4 dst_elem_size=4 src_pattern=[4,1][1,1] dst_pattern=[4,1][1,1] src_var_id=%x src_var_offset=4 src_shape_reg=0 dst_var_id=%SB dst_var_offset=4100 dst_shape_reg=0

.engine dve
    TENSOR_TENSOR S[9]>=16 op=ADD src0=fp32@0x1000[1,1,1][1,1,1] src1=fp32@0x1004[1,1,1][1,1,1] dst=fp32@0x2000[1,1,1][1,1,1] channels=1
