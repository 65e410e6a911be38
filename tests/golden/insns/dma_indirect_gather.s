# Rows 2, 0, 2 of x (8 bytes each) into partitions 0, 1, 2; the indices stand in one partition.
.target trn2
.dialect extended
.constant x float32 [3, 2] 1 2 3 4 5 6
.constant i int32 [1, 3] 2 0 2
.queue qDyn pool 24
.queue qIn sp 8
.dma qIn 0 8 i+0[1,12][12,1] -> SB+0x1100[1,262144][12,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine pool
    DMA_INDIRECT S[8]>=16 semaphore=24 sem_increment=16 rows=3 index_step=8 row_step=262144 index=int32@0x1100[1,1,1,1,1][3,1,1,1,1] channels=1 src_elem_size=8 dst_elem_size=8 src_pattern=[1,1,1,1][1,1,1,1] dst_pattern=[1,1,1,1][1,1,1,1] src_var_id=%x src_var_offset=0 src_shape_reg=0 dst_var_id=%SB dst_var_offset=8192 dst_shape_reg=0 src_dtype=FLOAT32 dst_dtype=FLOAT32
