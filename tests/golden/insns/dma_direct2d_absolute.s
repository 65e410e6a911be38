# b8, the loaded form, by device addresses: partition 0 to partition 3 of core 0 (0x2000000000 + 3 * 0x40000 + 0x1000).
.target trn2
.constant x float32 [1, 2] 1 2
.queue qDyn sp 24
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    DMA_DIRECT2D S[8]>=16 semaphore=24 sem_increment=16 src_elem_size=8 dst_elem_size=8 src_pattern=[8,1][1,1] dst_pattern=[8,1][1,1] src_addr_imm=0x2000001000 src_shape_reg=0 dst_addr_imm=0x20000c1000 dst_shape_reg=0 compute_op=NONE
