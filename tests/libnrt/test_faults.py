"""Every injected fault, through C, in one process: status, line of the log, counter, core dump, and what `why` says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from emulator.runtime.injection import INJECTIONS
from emulator.runtime.ledger_state import read_state
from formats.core import open_core
from formats.nrt.story import read_story
from tests.cli.conftest import Cli, cli  # noqa: F401  a fixture
from tests.libnrt.test_programs import compiled, header, surroundings
from tests.runtime.support import copying


class Fault(NamedTuple):
    """What the documentation has of a fault: status, words of the log, the driver's counter (runtime.md 11.1 to 12)."""

    status: int
    log: str
    counter: str


DOCUMENTED = {
    "sram-ue": Fault(1202, "Uncorrectable memory error is detected, metadata: 0x16", "hardware/sram_ecc_uncorrected"),
    "hbm-ue": Fault(1201, "Uncorrectable HBM memory error is detected", "hardware/mem_ecc_uncorrected"),
    "hbm-ue-repairable": Fault(1205, "Please reload the neuron driver or reboot",
                               "hardware/mem_ecc_repairable_uncorrected"),
    "dma-abort": Fault(1203, "DMA TX engine 0 is in an abort state", "status/dma_abort"),
    "hang": Fault(5, "waiting for execution completion notification", "status/timeout"),
    "missing-notification": Fault(5, "Missing infer_status notification", "status/timeout"),
    "collectives-hang": Fault(1200, "suspected hang in collectives operation", "status/hw_collectives"),
    "numerical": Fault(1003, "INFER_ERROR_SUBTYPE_NUMERICAL", "status/infer_completed_with_num_error"),
    "double-event": Fault(1004, "Error notifications found on NC", "status/infer_completed_with_error"),
    "nq-overflow": Fault(1204, "its notification queue overflowed", "status/sw_nq_overflow"),
    "network": Fault(1206, "connection closed by remote peer", "status/generic_error"),
    "lost-device": Fault(6, "the device does not answer", "status/hw_error"),
    "out-of-memory": Fault(4, "device memory is exhausted", "status/resource_error"),
    "host-memory": Fault(11, "host memory is exhausted", "status/failure"),
}  # fmt: skip

PROGRAM = r"""
static char neff[1 << 20];
static float x[128 * 64];
int main(int argc, char **argv) {
    FILE *file = fopen(argv[1], "rb");
    size_t size = fread(neff, 1, sizeof neff, file);
    nrt_model_t *model;
    nrt_tensor_t *in, *out, *more;
    nrt_tensor_set_t *inputs, *outputs;
    if (nrt_init(1, "", "")) return 98;
    printf("%d\n", nrt_tensor_allocate(0, 0, 64, "t", &more));
    printf("%d\n", nrt_tensor_allocate(1, 0, 64, "t", &more));
    if (nrt_load(neff, size, 0, 1, &model)) return 99;
    nrt_tensor_allocate(0, 0, sizeof x, "x", &in);
    nrt_tensor_allocate(0, 0, sizeof x, "y", &out);
    nrt_allocate_tensor_set(&inputs);
    nrt_allocate_tensor_set(&outputs);
    nrt_add_tensor_to_tensor_set(inputs, "x", in);
    nrt_add_tensor_to_tensor_set(outputs, "y", out);
    for (int turn = 0; turn < atoi(argv[2]); turn++) printf("%d\n", nrt_execute(model, inputs, outputs));
    nrt_close();
    return 0;
}
"""


def test_every_fault(library: Path, tmp_path: Path, cli: Cli) -> None:  # noqa: F811
    assert set(DOCUMENTED) == set(INJECTIONS)
    calls = [kind for kind, each in INJECTIONS.items() if not each.fault]
    kinds = [*calls, *(kind for kind in INJECTIONS if kind not in calls)]
    (tmp_path / "copy.neff").write_bytes(copying())
    program = compiled(header() + PROGRAM, library, tmp_path)
    done = subprocess.run(
        [str(program), "copy.neff", str(len(kinds) - len(calls) + 1)], capture_output=True, text=True, timeout=120,
        check=False, cwd=tmp_path, env=surroundings(
            library, NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY=str(tmp_path / "dumps"), NEURONTOOLS_MACHINE=str(tmp_path),
            NEURONTOOLS_INJECT=",".join(f"{kind}:2" if kind not in calls else kind for kind in kinds)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # One each, in the order of the plan; then all is well.
    assert [int(line) for line in done.stdout.split()] == [*(DOCUMENTED[kind].status for kind in kinds), 0]
    for kind in kinds:
        assert DOCUMENTED[kind].log in done.stderr, kind
    (path,) = tmp_path.glob("*.json")
    counters = read_state(path).counters
    for kind in kinds:
        expected = sum(each.counter == DOCUMENTED[kind].counter for each in DOCUMENTED.values())
        assert (
            counters.get((0, DOCUMENTED[kind].counter), 0) + counters.get((-1, DOCUMENTED[kind].counter), 0) >= expected
        )
    dumps = sorted((each for each in (tmp_path / "dumps").iterdir() if "-nc0-" in each.name),
                   key=lambda each: int(each.name.rpartition("-lid-")[2]))  # fmt: skip
    assert len(dumps) == len(kinds) - len(calls)
    for kind, dump in zip(kinds[len(calls) :], dumps, strict=True):
        core = open_core(dump)
        assert core.status is not None and core.status.code == DOCUMENTED[kind].status
        assert INJECTIONS[kind].message in cli("core", "why", dump).out, kind
    logs = [each.read_text() for each in (tmp_path / "dumps").iterdir() if each.name.endswith(".log")]
    assert logs and read_story(logs[-1].splitlines()).first is not None
    assert len(re.findall(r"Failure: NRT_\w+ in nrt_execute\(\)", done.stderr)) == len(dumps)
