# Two rows go to one place and add up: 10 + 1 + 2 = 13.
.target trn2
.dialect extended
.constant x float32 [2, 1] 1 2
.constant i int32 [2, 1] 0
.constant z float32 [1, 1] 10
.queue qDyn pool 24
.queue qIn sp 8
.dma qIn 0 8 x+0[1,4][4,2] -> SB+0x1000[1,262144][4,2]
.dma qIn 1 8 i+0[1,4][4,2] -> SB+0x1100[1,262144][4,2]
.dma qIn 2 8 z+0[1,4][4,1] -> SB+0x2000[1,262144][4,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1
    PSEUDO_DMA_TRIGGER qIn block_id=2

.engine pool
    DMA_INDIRECT S[8]>=48 semaphore=24 sem_increment=16 scatter=1 accumulate=1 rows=2 index_step=4 row_step=262144 index=int32@0x1100[1,1,1,1,1][1,1,1,1,1] channels=2 src_elem_size=4 dst_elem_size=4 src_pattern=[1,1,1,1][1,1,1,1] dst_pattern=[1,1,1,1][1,1,1,1] src_var_id=%SB src_var_offset=4096 src_shape_reg=0 dst_var_id=%SB dst_var_offset=8192 dst_shape_reg=0 src_dtype=FLOAT32 dst_dtype=FLOAT32
