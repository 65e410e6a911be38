"""A report of neuron-monitor put together from the documentation's samples, with the numbers that stand there.

Source: aws-neuron/aws-neuron-sdk, tools/neuron-sys-tools/neuron-monitor-user-guide.rst. The page elides cores and CPUs;
sums are over what is here.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

_CORE = {"constants": 193986816, "model_code": 176285056, "model_shared_scratchpad": 0, "runtime_memory": 0,
         "tensors": 20971520}  # fmt: skip
_HOST = {"application_memory": 6996594688, "constants": 0, "dma_buffers": 1048576, "tensors": 0}
_SMALL = {"application_memory": 20480, "constants": 0, "dma_buffers": 0, "tensors": 0}
_CPU = {"user": 34.41, "nice": 0, "system": 27.96, "idle": 37.63, "io_wait": 0, "irq": 0, "soft_irq": 0}
_TOTAL = {"p0": 0.01100001, "p1": 0.01100002, "p25": 0.01100004, "p50": 0.01100008, "p75": 0.0110001,
          "p99": 0.01100012, "p100": 0.01100013}  # fmt: skip
_SAMPLE: dict[str, Any] = {
    "neuron_runtime_data": [{"pid": 0, "address": "", "neuron_runtime_tag": "my_app_1", "error": "", "report": {
        "neuroncore_counters": {"period": 1.000113182, "neuroncores_in_use": {
            "0": {"neuroncore_utilization": 42.01, "flops": 1234567891011, "v3d": {
                "nc_v3.0": {"neuroncore_utilization": 21.01}, "nc_v3.1": {"neuroncore_utilization": 63.01}}},
            "1": {"neuroncore_utilization": 42.02, "flops": 1234567891021, "v3d": {
                "nc_v3.2": {"neuroncore_utilization": 21.02}, "nc_v3.3": {"neuroncore_utilization": 63.02}}}},
            "error": ""},
        "execution_stats": {"period": 1.030613214,
            "error_summary": {"generic": 0, "numerical": 0, "transient": 0, "model": 0, "runtime": 0, "hardware": 0},
            "execution_summary": {"completed": 123, "completed_with_err": 0, "completed_with_num_err": 0,
                                  "timed_out": 0, "incorrect_input": 0, "failed_to_queue": 0},
            "latency_stats": {"total_latency": _TOTAL, "device_latency": {k: v - 0.001 for k, v in _TOTAL.items()}},
            "error": ""},
        "memory_used": {"period": 1.00001, "neuron_runtime_used_bytes": {
            "host": 6997643264, "neuron_device": 2 * 391243392,
            "usage_breakdown": {"host": _HOST, "neuroncore_memory_usage": {"0": _CORE, "1": _CORE}}},
            "loaded_models": [{"name": "neff", "uuid": "91f2f66e83ea419dace1da07617ad39f", "model_id": 10005,
                "is_running": False, "subgraphs": {"sg_00": {"memory_used_bytes": {
                    "host": 20480, "neuron_device": 21001024, "usage_breakdown": {"host": _SMALL, "neuron_device": {
                        "constants": 20971520, "model_code": 29504, "runtime_memory": 0, "tensors": 0}}},
                    "neuroncore_index": 0, "neuron_device_index": 12}}}],
            "error": ""},
        "neuron_runtime_vcpu_usage": {"period": 1.030604818, "vcpu_usage": {"user": 42.01, "system": 12.34},
                                      "error": ""}}}],
    "system_data": {
        "neuron_hw_counters": {"period": 1.030359284, "neuron_devices": [{
            "neuron_device_index": 0, "mem_ecc_corrected": 0, "mem_ecc_uncorrected": 0, "sram_ecc_uncorrected": 0,
            "sram_ecc_corrected": 0}], "error": ""},
        "vcpu_usage": {"period": 0.999974868, "average_usage": {**_CPU, "user": 32.77, "system": 22.87, "idle": 39.36},
                       "usage_data": {"0": _CPU, "1": {**_CPU, "user": 56.84, "system": 28.42, "idle": 14.74}},
                       "context_switch_count": 123456, "error": ""},
        "memory_info": {"period": 5.346411129, "memory_total_bytes": 49345835008, "memory_used_bytes": 16042344448,
                        "swap_total_bytes": 0, "swap_used_bytes": 0, "error": ""}},
    "instance_info": {"instance_name": "My_Instance", "instance_id": "i-0011223344556677a",
        "instance_type": "trn2n.48xlarge", "instance_availability_zone": "us-west-2b",
        "instance_availability_zone_id": "usw2-az2", "instance_region": "us-west-2", "ami_id": "ami-0011223344556677b",
        "subnet_id": "subnet-112233ee", "error": ""},
    "neuron_hardware_info": {"neuron_device_type": "trainium2", "neuron_device_version": "v4",
        "neuroncore_version": "v3d", "neuron_device_count": 16, "neuron_device_memory_size": 103079215104,
        "neuroncore_per_device_count": 4, "logical_neuroncore_config": 2, "error": ""},
    "neuron_k8s_info": {"period": 15.030359284, "neuroncores_k8s_info": {
        "0": {"pod_name": "p0", "namespace": "n0", "container_name": ["c0"]}}, "neurondevices_k8s_info": {
        "0": {"pod_name": "p0", "namespace": "n0", "container_name": ["c0"]}}, "error": ""},
}  # fmt: skip
CONFIG = {
    "period": "1s",
    "neuron_runtimes": [{"tag_filter": ".*", "metrics": [{"type": "neuroncore_counters"}, {"type": "memory_used"},
                         {"type": "neuron_runtime_vcpu_usage"}, {"type": "execution_stats"}]}],
    "system_metrics": [{"type": "vcpu_usage"}, {"type": "memory_info"},
                       {"period": "2s", "type": "neuron_hw_counters"}],
}  # fmt: skip


def documented_report() -> dict[str, Any]:
    """Return the report, for a test to change."""
    return deepcopy(_SAMPLE)
