"""The C interface of libnrt as data: every function of the public headers, its types, and what this library does.

From this table come the declarations that the library is compiled from, its list of symbols, the documentation, and the
comparison with the public headers. Names, numbers and layouts: public headers (runtime.md 11.3, 11.4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus

__all__ = ["FUNCTIONS", "TYPES", "Function", "Parameter"]

_PARAMETER = re.compile(r"(?P<type>.*?[ *])(?P<name>\w+)")
_PROTOTYPE = re.compile(r"(?P<returns>[\w ]+?[ *]+)(?P<name>\w+)\((?P<parameters>.*)\)")

TYPES = """
typedef int NRT_STATUS;
typedef unsigned int nrt_enum_t;
typedef struct nrt_model nrt_model_t;
typedef struct nrt_tensor nrt_tensor_t;
typedef struct nrt_cc_context nrt_cc_context_t;
typedef struct nrta_error_tracker nrta_error_tracker_t;
typedef struct nrt_profile_continuous_options nrt_profile_continuous_options_t;
typedef struct nrt_inspect_config nrt_inspect_config_t;
typedef struct nrt_sys_trace_config nrt_sys_trace_config_t;
typedef struct nrt_sys_trace_fetch_options nrt_sys_trace_fetch_options_t;
typedef struct nrt_async_sendrecv_comm nrt_async_sendrecv_comm_t;
typedef struct nrt_async_sendrecv_request nrt_async_sendrecv_request_t;
typedef void nrt_tensor_set_t;
typedef uint64_t nrta_seq_t;
typedef struct { uint32_t family; uint32_t size; char arch_name[16]; char device_revision[8]; } nrt_instance_info_t;
typedef struct { uint64_t offset; uint64_t size; void *buffer; } nrt_tensor_batch_op_t;
typedef struct { const nrt_tensor_t *tensor; const nrt_tensor_batch_op_t *ops; uint32_t num_ops; } nrt_tensor_batch_t;
typedef struct { uint64_t physical_address; size_t size; int hbm_index; } nrt_tensor_device_allocation_info_t;
typedef struct { size_t bytes_used; size_t bytes_limit; } nrt_vnc_memory_stats_t;
typedef struct {
    uint32_t *replica_group; uint32_t rank; uint32_t rank_n;
    uint32_t ctx_device_id; uint32_t ctx_device_count; uint32_t vnc;
} nrt_cc_comm_t;
typedef struct { nrt_tensor_t **tensors; size_t num_tensors; } nrt_tensor_list_t;
typedef struct { nrta_seq_t seq_id; uint64_t error_code; } nrta_error_t;
typedef struct {
    char name[256]; nrt_enum_t usage; size_t size; nrt_enum_t dtype; uint32_t *shape; uint32_t ndim;
} nrt_tensor_info_t;
typedef struct { uint64_t tensor_count; nrt_tensor_info_t tensor_array[]; } nrt_tensor_info_array_t;
typedef struct { uint8_t *bin; size_t size; } nrt_ucode_img;
typedef struct { nrt_ucode_img iram; nrt_ucode_img dram; } nrt_ucode_info;
typedef struct { uint32_t vnc; } nrt_model_info_t;
typedef void (*nrt_async_exec_callback_t)(void *, uint32_t, uint32_t, uint64_t, NRT_STATUS);
typedef struct { uint64_t data_size; uint32_t type; char reserved[52]; } ndebug_stream_event_header_t;
typedef struct {
    uint64_t rt_major; uint64_t rt_minor; uint64_t rt_patch; uint64_t rt_maintenance;
    char rt_detail[128]; char git_hash[64];
} nrt_version_t;
"""


class Parameter(NamedTuple):
    """One parameter: its C type and its name."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}{'' if self.type.endswith('*') else ' '}{self.name}"


class Function(NamedTuple):
    """One function; `missing` says what this library lacks, with the status that it returns then.

    `early` functions may be called before nrt_init.
    """

    name: str
    returns: str
    parameters: tuple[Parameter, ...]
    header: str
    early: bool = False
    missing: str = ""
    status: NrtStatus = NrtStatus.NRT_FAILURE

    @property
    def prototype(self) -> str:
        """Return the declaration, without a semicolon."""
        parameters = ", ".join(map(str, self.parameters)) or "void"
        return f"{self.returns}{'' if self.returns.endswith('*') else ' '}{self.name}({parameters})"


_HEADERS: Mapping[str, str] = {
    "nrt_status.h": """
const char *nrt_get_status_as_str(NRT_STATUS status)
""",
    "nrt_version.h": """
NRT_STATUS nrt_get_version(nrt_version_t *ver, size_t size)
""",
    "nrt.h": """
NRT_STATUS nrt_get_instance_info(nrt_instance_info_t *info, size_t instance_info_len)
NRT_STATUS nrt_init(nrt_enum_t framework, const char *fw_version, const char *fal_version)
void nrt_close()
NRT_STATUS nrt_load(const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count, nrt_model_t **model)
NRT_STATUS nrt_load_collectives(const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count,
    uint32_t ctx_device_id, uint32_t ctx_device_count, nrt_model_t **model)
NRT_STATUS nrt_unload(nrt_model_t *model)
NRT_STATUS nrt_get_model_nc_count(const nrt_model_t *model, uint32_t *vnc_count)
NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t *model, uint32_t *vnc_count)
NRT_STATUS nrt_get_total_nc_count(uint32_t *vnc_count)
NRT_STATUS nrt_get_total_vnc_count(uint32_t *vnc_count)
NRT_STATUS nrt_get_visible_nc_count(uint32_t *vnc_count)
NRT_STATUS nrt_get_visible_vnc_count(uint32_t *vnc_count)
NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t **result)
void nrt_destroy_tensor_set(nrt_tensor_set_t **tensor_set)
NRT_STATUS nrt_add_tensor_to_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name, nrt_tensor_t *tensor)
NRT_STATUS nrt_get_tensor_from_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name, nrt_tensor_t **tensor)
NRT_STATUS nrt_execute(nrt_model_t *model, const nrt_tensor_set_t *input_set, nrt_tensor_set_t *output_set)
NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *input_set,
    nrt_tensor_set_t *output_set, int repeat_count)
NRT_STATUS nrt_build_global_comm(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count)
NRT_STATUS nrt_tensor_allocate(nrt_enum_t tensor_placement, int vnc, size_t size, const char *name,
    nrt_tensor_t **tensor)
void nrt_tensor_free(nrt_tensor_t **tensor)
NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buf, size_t offset, size_t size)
NRT_STATUS nrt_tensor_write(nrt_tensor_t *tensor, const void *buf, size_t offset, size_t size)
NRT_STATUS nrt_tensor_read_batch(const nrt_tensor_batch_t *batches, uint64_t num_batches, bool unsafe)
NRT_STATUS nrt_tensor_write_batch(const nrt_tensor_batch_t *batches, uint64_t num_batches, bool unsafe)
NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *src, size_t src_offset, nrt_tensor_t *dst, size_t dst_offset,
    size_t size)
size_t nrt_tensor_get_size(const nrt_tensor_t *tensor)
NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value, size_t size)
NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor)
NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t size)
NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *tensor_source, size_t offset, size_t size,
    const char *name, nrt_tensor_t **tensor_slice)
void *nrt_tensor_get_va(const nrt_tensor_t *tensor)
NRT_STATUS nrt_tensor_get_device_allocation_info(const nrt_tensor_t *tensor,
    nrt_tensor_device_allocation_info_t *alloc_info)
NRT_STATUS nrt_tensor_check_output_completion(const nrt_tensor_t *output_tensor, int64_t timeout,
    uint64_t expected_completion_count)
NRT_STATUS nrt_tensor_reset_output_completion(nrt_tensor_t *output_tensor)
NRT_STATUS nrt_get_dmabuf_fd(uint64_t va, uint64_t size, int *fd)
NRT_STATUS nrt_host_device_id_get(int neuron_dev, uint32_t *host_device_id)
NRT_STATUS nrt_host_device_id_rid_map_get(uint32_t *count, uint32_t *host_did_to_rid_map)
NRT_STATUS nrt_get_hbm_mmap_va(int device_id, int hbm_idx, void **addr, size_t *size)
NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t *stats, size_t stats_size_in,
    size_t *stats_size_out)
NRT_STATUS nrt_get_attached_efa_bdf(const void *va, char *efa_bdf, size_t *len)
NRT_STATUS nrt_cc_global_comm_init(uint32_t vnc, uint32_t g_device_id, uint32_t g_device_count)
""",
    "nrt_async.h": """
NRT_STATUS nrta_tensor_write(nrt_tensor_t *tensor, const void *buf, uint64_t offset, uint64_t size, int queue,
    nrta_error_tracker_t *err, nrta_seq_t *req_sequence)
NRT_STATUS nrta_tensor_read(void *buf, nrt_tensor_t *tensor, uint64_t offset, uint64_t size, int queue,
    nrta_error_tracker_t *err, nrta_seq_t *req_sequence)
NRT_STATUS nrta_tensor_copy(nrt_tensor_t *src, uint64_t src_offset, nrt_tensor_t *dst, uint64_t dst_offset,
    uint64_t size, int queue, nrta_error_tracker_t *err, nrta_seq_t *req_sequence)
NRT_STATUS nrta_execute_schedule(nrt_model_t *model, const nrt_tensor_set_t *input, nrt_tensor_set_t *output,
    int queue, nrta_error_tracker_t *err, nrta_seq_t *req_sequence)
NRT_STATUS nrta_cc_prepare(nrt_cc_comm_t *comm, nrt_tensor_list_t *input, nrt_tensor_list_t *output,
    nrt_enum_t dtype, nrt_enum_t op, nrt_enum_t cc_op, nrt_cc_context_t **cc_ctx)
NRT_STATUS nrta_cc_schedule(nrt_cc_context_t **cc_ctx, int queue, nrta_error_tracker_t *err, nrta_seq_t *req_sequence)
NRT_STATUS nrta_is_completed(nrta_seq_t seq, bool *is_completed)
NRT_STATUS nrta_get_sequence(uint32_t lnc, nrt_enum_t xu, int queue, nrta_seq_t *seq)
NRT_STATUS nrta_get_completion_handle(nrta_seq_t seq, int *fd)
NRT_STATUS nrta_error_tracker_create(uint32_t lnc_idx, nrta_error_tracker_t **error_tracker)
void nrta_error_tracker_destroy(nrta_error_tracker_t *error_tracker)
NRT_STATUS nrta_error_tracker_get_list(nrta_error_tracker_t *error_tracker, const nrta_error_t **list,
    size_t *error_count)
""",
    "nrt_profile.h": """
NRT_STATUS nrt_profile_start(nrt_model_t *model, const char *filename)
NRT_STATUS nrt_profile_stop(const char *filename)
NRT_STATUS nrt_profile_continuous_options_allocate(nrt_profile_continuous_options_t **options)
NRT_STATUS nrt_profile_continuous_options_free(nrt_profile_continuous_options_t *options)
NRT_STATUS nrt_profile_continuous_options_set_output_dir(nrt_profile_continuous_options_t *options,
    const char *output_dir)
NRT_STATUS nrt_profile_continuous_start(nrt_profile_continuous_options_t *options)
NRT_STATUS nrt_profile_continuous_save(uint32_t vnc, nrt_profile_continuous_options_t *options)
NRT_STATUS nrt_profile_continuous_stop()
NRT_STATUS nrt_inspect_begin()
NRT_STATUS nrt_inspect_stop()
NRT_STATUS nrt_inspect_config_allocate(nrt_inspect_config_t **options)
NRT_STATUS nrt_inspect_config_set_defaults(nrt_inspect_config_t *options)
NRT_STATUS nrt_inspect_config_free(nrt_inspect_config_t *options)
NRT_STATUS nrt_inspect_config_set_session_id(nrt_inspect_config_t *options, int session_id)
NRT_STATUS nrt_inspect_config_set_output_dir(nrt_inspect_config_t *options, const char *output_dir)
NRT_STATUS nrt_inspect_config_set_sys_trace_max_events_per_nc(nrt_inspect_config_t *options,
    uint64_t sys_trace_max_events_per_nc)
NRT_STATUS nrt_inspect_config_set_capture_enabled_for_nc(nrt_inspect_config_t *options, uint32_t nc_idx, bool enabled)
NRT_STATUS nrt_inspect_config_set_capture_enabled_for_event_type_string(nrt_inspect_config_t *options,
    const char *event_type, bool enabled)
NRT_STATUS nrt_inspect_config_set_enable_inspect(nrt_inspect_config_t *options, bool enable_inspect)
NRT_STATUS nrt_inspect_config_set_enable_inspect_on_fail(nrt_inspect_config_t *options, bool enable_inspect_on_fail)
NRT_STATUS nrt_inspect_begin_with_options(nrt_inspect_config_t *options)
NRT_STATUS nrt_inspect_config_get_all_activity_types(const char ***activity_types, size_t *count)
NRT_STATUS nrt_inspect_config_get_enabled_activity_types(nrt_inspect_config_t *options,
    const char ***activity_types, size_t *count)
void nrt_inspect_config_free_activity_types(const char **activity_types, size_t count)
NRT_STATUS nrt_inspect_config_set_activity(nrt_inspect_config_t *options, const char *activity_type, bool enabled)
""",
    "nrt_sys_trace.h": """
NRT_STATUS nrt_sys_trace_config_allocate(nrt_sys_trace_config_t **options)
void nrt_sys_trace_config_set_defaults(nrt_sys_trace_config_t *options)
void nrt_sys_trace_config_free(nrt_sys_trace_config_t *options)
void nrt_sys_trace_config_set_max_events_per_nc(nrt_sys_trace_config_t *options, uint64_t max_events_per_nc)
void nrt_sys_trace_config_set_capture_enabled_for_nc(nrt_sys_trace_config_t *options, uint32_t nc_idx, bool enabled)
NRT_STATUS nrt_sys_trace_config_set_capture_enabled_for_event_type(nrt_sys_trace_config_t *options,
    const char *event_type, bool enabled)
NRT_STATUS nrt_sys_trace_get_event_types(const char ***event_types, size_t *count)
void nrt_sys_trace_free_event_types(const char **event_types, size_t count)
NRT_STATUS nrt_sys_trace_config_get_enabled_event_types(nrt_sys_trace_config_t *options,
    const char ***event_types, size_t *count)
NRT_STATUS nrt_sys_trace_start(nrt_sys_trace_config_t *options)
NRT_STATUS nrt_sys_trace_stop()
NRT_STATUS nrt_sys_trace_fetch_options_allocate(nrt_sys_trace_fetch_options_t **options)
void nrt_sys_trace_fetch_options_set_defaults(nrt_sys_trace_fetch_options_t *options)
void nrt_sys_trace_fetch_options_free(nrt_sys_trace_fetch_options_t *options)
void nrt_sys_trace_fetch_options_set_max_events_per_nc(nrt_sys_trace_fetch_options_t *options,
    uint64_t max_events_per_nc)
void nrt_sys_trace_fetch_options_set_nc_idx(nrt_sys_trace_fetch_options_t *options, uint64_t nc_idx)
NRT_STATUS nrt_sys_trace_fetch_events(char **buffer, size_t *written_size, const nrt_sys_trace_fetch_options_t *options)
void nrt_sys_trace_buffer_free(char *buffer)
""",
    "ndebug_stream.h": """
NRT_STATUS nrt_debug_client_connect(int logical_nc_idx, int *stream_fd)
void nrt_debug_client_connect_close(int stream_fd)
NRT_STATUS nrt_debug_client_read_one_event(int stream_fd, ndebug_stream_event_header_t *header, void **payload)
""",
    "nrt_experimental.h": """
NRT_STATUS nrt_get_model_tensor_info(nrt_model_t *model, nrt_tensor_info_array_t **tensor_info)
NRT_STATUS nrt_get_model_instance_count(nrt_model_t *model, uint32_t *instance_count)
NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t *tensor_info)
NRT_STATUS nrt_trace_start(bool trace_mem)
NRT_STATUS nrt_trace_stop(const char *filename)
void *nrt_get_libnccl_net(int *err, char *err_msg, size_t err_msg_size)
NRT_STATUS nrt_set_pool_eng_ucode(const nrt_ucode_info *ucode_info)
NRT_STATUS nrt_memcpy_to_device(void *dest, const void *src, size_t size)
NRT_STATUS nrt_register_async_exec_callback(nrt_async_exec_callback_t callback, void *params)
NRT_STATUS nrt_barrier(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count)
NRT_STATUS nrt_all_gather(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count, uint32_t rank_input_size,
    void *input, void *output)
NRT_STATUS nrt_async_drain_queued_execs(int32_t vnc)
NRT_STATUS nrt_get_model_info(const nrt_model_t *model, nrt_model_info_t *info, size_t info_size_in,
    size_t *info_size_out)
""",
    "nrt_async_sendrecv.h": """
NRT_STATUS nrt_async_sendrecv_get_max_num_communicators_per_lnc(int *num)
NRT_STATUS nrt_async_sendrecv_get_max_num_pending_request(int *num)
NRT_STATUS nrt_async_sendrecv_init(int lnc)
NRT_STATUS nrt_async_sendrecv_close(int lnc)
NRT_STATUS nrt_async_sendrecv_connect(const char *peer_ip, int peer_lnc, int lnc, nrt_async_sendrecv_comm_t **send_comm)
NRT_STATUS nrt_async_sendrecv_accept(const char *peer_ip, int peer_lnc, int lnc, nrt_async_sendrecv_comm_t **recv_comm)
NRT_STATUS nrt_async_sendrecv_test_comm(nrt_async_sendrecv_comm_t *comm, bool *done)
NRT_STATUS nrt_async_sendrecv_send_tensor(nrt_tensor_t *tensor, size_t offset, size_t length,
    nrt_async_sendrecv_comm_t *send_comm, nrt_async_sendrecv_request_t **request)
NRT_STATUS nrt_async_sendrecv_recv_tensor(nrt_tensor_t *tensor, size_t offset, size_t length,
    nrt_async_sendrecv_comm_t *recv_comm, nrt_async_sendrecv_request_t **request)
NRT_STATUS nrt_async_sendrecv_test_request(nrt_async_sendrecv_request_t *request, bool *done, size_t *size)
NRT_STATUS nrt_async_sendrecv_flush(int lnc)
""",
}

_EARLY = frozenset(
    (
        "nrt_get_status_as_str", "nrt_get_version", "nrt_get_instance_info", "nrt_init", "nrt_close",
        "nrt_get_total_nc_count", "nrt_get_total_vnc_count", "nrt_get_visible_nc_count", "nrt_get_visible_vnc_count",
        "nrt_set_pool_eng_ucode", "nrt_sys_trace_get_event_types", "nrt_sys_trace_free_event_types",
        "nrt_inspect_config_get_all_activity_types", "nrt_inspect_config_free_activity_types",
    )
)  # fmt: skip
_MISSING: Mapping[str, tuple[str, NrtStatus]] = {
    "nrt_get_dmabuf_fd": ("no dma-buf stands behind emulated memory", NrtStatus.NRT_FAILURE),
    "nrt_get_hbm_mmap_va": ("emulated HBM is not mapped as a whole", NrtStatus.NRT_INVALID),
    "nrt_get_attached_efa_bdf": ("no network adapter is emulated", NrtStatus.NRT_FAILURE),
    "nrt_trace_start": ("use nrt_sys_trace_start", NrtStatus.NRT_FAILURE),
    "nrt_trace_stop": ("use nrt_sys_trace_fetch_events", NrtStatus.NRT_FAILURE),
    "nrt_get_libnccl_net": ("no network plug-in is emulated", NrtStatus.NRT_FAILURE),
    "nrt_set_pool_eng_ucode": ("micro-code is not executed", NrtStatus.NRT_FAILURE),
    "nrt_register_async_exec_callback": ("implicit asynchronous execution was removed; use nrta_execute_schedule",
                                         NrtStatus.NRT_FAILURE),
}  # fmt: skip


def _functions() -> Iterator[Function]:
    for header, text in _HEADERS.items():
        for line in text.strip().replace("\n    ", " ").splitlines():
            found = _PROTOTYPE.fullmatch(line)
            assert found is not None, line
            parameters = tuple(
                Parameter(each["type"].strip(), each["name"])
                for each in map(_PARAMETER.fullmatch, filter(None, found["parameters"].split(", ")))
                if each is not None
            )
            name = found["name"]
            missing, status = _MISSING.get(name, ("", NrtStatus.NRT_FAILURE))
            yield Function(name, found["returns"].strip(), parameters, header, name in _EARLY, missing, status)


FUNCTIONS: tuple[Function, ...] = tuple(_functions())
