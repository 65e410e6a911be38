# 16 bytes from a variable of 8: refused when the transfer is started, on the engine that starts it.
.target trn2
.dialect extended
.constant x float32 [2] 1 2
.constant i int32 [1, 1] 3
.queue qDyn pool 24
.queue qIn sp 8
.dma qIn 0 8 i+0[1,4][4,1] -> SB+0x1100[1,262144][4,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
# index 3 * 4 bytes = 12, past the 8 bytes of x
    DMA_INDIRECT S[8]>=16 semaphore=24 sem_increment=16 rows=1 index_step=4 row_step=4 index=int32@0x1100[1,1,1,1,1][1,1,1,1,1] channels=1 src_elem_size=4 dst_elem_size=4 src_pattern=[1,1,1,1][1,1,1,1] dst_pattern=[1,1,1,1][1,1,1,1] src_var_id=%x src_var_offset=0 src_shape_reg=0 dst_var_id=%SB dst_var_offset=8192 dst_shape_reg=0 src_dtype=FLOAT32 dst_dtype=FLOAT32
