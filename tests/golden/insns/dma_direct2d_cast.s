# d4 from SBUF to an output, fp32 to fp16: 2049 goes to the even 2048. Counts on both sides: 2 x 2 and one run of 8 bytes.
.target trn2
.output y float16 [4]
.constant x float32 [2, 2] 1 2049 -3 4
.queue qDyn act 24
.queue qIn sp 8
.dma qIn 0 8 x+0[1,8][8,2] -> SB+0x1000[1,262144][8,2]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine act
    PSEUDO_DMA_DIRECT2D S[8]>=16 dge_op=DIRECT2D semaphore=30 sem_increment=16 src_elem_size=8 dst_elem_size=4 src_pattern=[262144,1][2,1] dst_pattern=[4,1][2,1] src_var_id=%SB src_var_offset=4096 src_shape_reg=0 dst_var_id=%y dst_var_offset=0 dst_shape_reg=0 in_dtype=fp32 out_dtype=fp16
