# Rows of SBUF to rows 1, 7 (outside, left out) and 0 of y; the row of y that no index names keeps its NaN.
.target trn2
.dialect extended
.output y float32 [3, 1]
.constant x float32 [3, 1] 1 2 3
.constant i int32 [3, 1] 1 7 0
.queue qDyn pool 24
.queue qIn sp 8
.dma qIn 0 8 x+0[1,4][4,3] -> SB+0x1000[1,262144][4,3]
.dma qIn 1 8 i+0[1,4][4,3] -> SB+0x1100[1,262144][4,3]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1

.engine pool
    DMA_INDIRECT S[8]>=32 semaphore=24 sem_increment=16 scatter=1 skip=1 rows=3 index_step=4 row_step=262144 index=int32@0x1100[1,1,1,1,1][1,1,1,1,1] channels=3 src_elem_size=4 dst_elem_size=4 src_pattern=[1,1,1,1][1,1,1,1] dst_pattern=[1,1,1,1][1,1,1,1] src_var_id=%SB src_var_offset=4096 src_shape_reg=0 dst_var_id=%y dst_var_offset=0 dst_shape_reg=0 src_dtype=FLOAT32 dst_dtype=FLOAT32
