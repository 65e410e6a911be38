"""Log lines for the tests: the grammar is the documentation's, the values are made up."""

from __future__ import annotations

OOB = (
    "2025-Sep-19 18:57:20.782962  4444:4445  ERROR  TDRV:exec_process_custom_notification        "
    "nd0:nc0:h_model.id1001: Received notification generated at runtime: failed to run scatter/gather (indirect memory "
    "copy), due to out-of-bound access. isa instruction line number = 11. model name = file.neff"
)
STATUS = (
    "2025-Sep-19 18:57:20.805570  4444:4444  ERROR  NMGR:dlr_infer                               "
    "Inference completed with err: 1006. mode->h_nn=1001, lnc=0"
)


def infodump(pid: int = 4444, failure: str = "NRT_EXEC_OOB in nrt_execute()", end: bool = True) -> list[str]:
    """Return the lines of an information block."""
    texts = [
        "------------->8------------[ cut here ]------------>8-------------",
        "NRT version: 2.99.1.0 (0123456789abcdef)",
        'Embedded FW version: 1.0.1.0 (fedc) loaded from "libnrtucode_extisa.so"',
        "CCOM version: 2.0.1.0- (compat 78)",
        "NCFW version: 1.0.2.0 (abcd)",
        "Instance ID: i-0b514eadc4fec7de6",
        "Cluster ID: 0",
        "Kernel: Linux 5.10.240 #1 SMP Thu Aug 7 19:38:22 UTC 2025",
        "Nodename: node7",
        "Driver version: 2.x",
        f"Failure: {failure}",
        "LNC: 0",
        "Visible cores: 0, 1",
        "UltraServer topology: none",
        "Environment:",
        "  NEURON_RT_LOG_LEVEL=INFO",
        "  NEURON_RT_ROOT_COMM_ID=10.0.0.1:4000",
    ]
    if end:
        texts.append("-------------8<-----------[ cut to here ]-----------8<------------")
    head = f"2025-Sep-19 18:57:20.813269  {pid}:{pid}  ERROR   NRT:nrt_infodump                            "
    return [head + text for text in texts]
