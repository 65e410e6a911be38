"""C programs against the library: one of ours, the guide's own, threads, and the processes around them."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from pathlib import Path

import numpy as np
import pytest

from formats.core import open_core
from formats.nrt.status import NrtStatus as S
from formats.nrt.story import read_story
from neurontools.libnrt.build import need_compiler
from neurontools.libnrt.functions import FUNCTIONS, TYPES
from tests.runtime.support import X, copying, out_of_bounds

_HEADERS = "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n"


def header() -> str:
    """Return declarations of all functions, made from the table."""
    return _HEADERS + TYPES + "".join(f"{function.prototype};\n" for function in FUNCTIONS)


def compiled(source: str, library: Path, folder: Path, *flags: str) -> Path:
    (folder / "program.c").write_text(source)
    program = folder / "program"
    command = [need_compiler(), "-o", str(program), str(folder / "program.c"), *flags, f"-L{library.parent}", "-lnrt"]
    done = subprocess.run([*command, "-lpthread"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def _run(program: Path, library: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, timeout=120, check=False, cwd=program.parent,
        env=surroundings(library, **environ),
    )  # fmt: skip


def surroundings(library: Path, **environ: str) -> dict[str, str]:
    """Return variables of a C program, with nothing of this interpreter's: its user need not have it on any path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NEURON", "PYTHON", "VIRTUAL"))}
    return {**kept, "PATH": os.defpath, "LD_LIBRARY_PATH": str(library.parent), **environ}


MOMENTS = r"""
int main(void) {
    nrt_model_t *model = 0;
    uint32_t count = 0;
    printf("%d\n", nrt_load("", 1, 0, 1, &model));
    printf("%d\n", nrt_get_visible_nc_count(&count));
    printf("%d\n", nrt_init(1, "", ""));
    printf("%d\n", nrt_init(1, "", ""));
    nrt_close();
    nrt_close();
    printf("%d\n", nrt_load("", 1, 0, 1, &model));
    printf("%d\n", nrt_init(1, "", ""));
    nrt_close();
    return 0;
}
"""


def test_the_moments_of_a_session(library: Path, tmp_path: Path) -> None:
    done = _run(compiled(header() + MOMENTS, library, tmp_path), library)
    assert done.returncode == 0, done.stderr
    expected = [S.NRT_UNINITIALIZED, S.NRT_SUCCESS, S.NRT_SUCCESS, S.NRT_INVALID, S.NRT_CLOSED, S.NRT_SUCCESS]
    assert [S(int(line)) for line in done.stdout.split()] == expected


THREADS = r"""
#include <pthread.h>
#include <string.h>
static char neff[1 << 20];
static size_t size;
static int turns;
static float x[128 * 64];
#define OK(call) do { int got = (call); if (got) { printf("%s: %d\n", #call, got); exit(1); } } while (0)

static void *work(void *argument) {
    int core = (int)(size_t)argument;
    for (int turn = 0; turn < turns; turn++) {
        nrt_tensor_t *in, *out, *part;
        float back[4];
        OK(nrt_tensor_allocate(0, core, sizeof x, "x", &in));
        OK(nrt_tensor_allocate(0, core, sizeof x, "y", &out));
        OK(nrt_tensor_write(in, x, 0, sizeof x));
        OK(nrt_tensor_allocate_slice(in, 16, 16, "part", &part));
        OK(nrt_tensor_read(part, back, 0, sizeof back));
        if (memcmp(back, x + 4, sizeof back)) { printf("slice of core %d\n", core); exit(1); }
        nrt_tensor_free(&in);
        OK(nrt_tensor_read(part, back, 0, sizeof back));
        nrt_tensor_free(&part);
        if (turn % 8 == 0) {
            nrt_model_t *model;
            nrt_tensor_set_t *inputs, *outputs;
            nrta_seq_t sequence;
            bool done = false;
            OK(nrt_load(neff, size, core, 1, &model));
            OK(nrt_tensor_allocate(0, core, sizeof x, "x", &in));
            OK(nrt_tensor_write(in, x, 0, sizeof x));
            OK(nrt_allocate_tensor_set(&inputs));
            OK(nrt_allocate_tensor_set(&outputs));
            OK(nrt_add_tensor_to_tensor_set(inputs, "x", in));
            OK(nrt_add_tensor_to_tensor_set(outputs, "y", out));
            if (turn % 16) {
                OK(nrt_execute(model, inputs, outputs));
            } else {
                OK(nrta_execute_schedule(model, inputs, outputs, 0, 0, &sequence));
                while (!done) OK(nrta_is_completed(sequence, &done));
            }
            OK(nrt_tensor_read(out, back, 4 * 100, sizeof back));
            if (memcmp(back, x + 100, sizeof back)) { printf("result of core %d\n", core); exit(1); }
            nrt_destroy_tensor_set(&inputs);
            nrt_destroy_tensor_set(&outputs);
            nrt_tensor_free(&in);
            OK(nrt_unload(model));
        }
        nrt_tensor_free(&out);
    }
    return 0;
}

int main(int argc, char **argv) {
    pthread_t threads[16];
    nrt_vnc_memory_stats_t before, after;
    size_t written;
    FILE *file = fopen(argv[1], "rb");
    size = fread(neff, 1, sizeof neff, file);
    turns = atoi(argv[2]);
    for (int i = 0; i < 128 * 64; i++) x[i] = i;
    OK(nrt_init(1, "", ""));
    OK(nrt_get_vnc_memory_stats(3, &before, sizeof before, &written));
    for (size_t i = 0; i < 16; i++) pthread_create(&threads[i], 0, work, (void *)(i % 4));
    for (int i = 0; i < 16; i++) pthread_join(threads[i], 0);
    OK(nrt_get_vnc_memory_stats(3, &after, sizeof after, &written));
    printf("%zu bytes more\n", after.bytes_used - before.bytes_used);
    nrt_close();
    return 0;
}
"""


def test_sixteen_threads(library: Path, tmp_path: Path) -> None:
    """Some 10^4 calls; with a thousand turns, 10^5, outside of the suite."""
    (tmp_path / "copy.neff").write_bytes(copying())
    program = compiled(header() + THREADS, library, tmp_path)
    done = _run(program, library, str(tmp_path / "copy.neff"), os.environ.get("NEURONTOOLS_STRESS_TURNS", "70"))
    assert (done.returncode, done.stdout) == (0, "0 bytes more\n"), done.stdout + done.stderr


def _guide() -> str:
    """Return the program of the developer guide, which is fetched and never kept."""
    corpus = os.environ.get("NEURONTOOLS_CORPUS")
    page = Path(corpus or "", "aws-neuron-sdk", "neuron-runtime", "guides", "nrt-developer-guide.rst")
    if not corpus or not page.is_file():
        pytest.skip("NEURONTOOLS_CORPUS names no folder with aws-neuron-sdk")
    found = re.search(r"\.\. code-block:: c\n\n((?:    .*\n|\n)+)", page.read_text())
    assert found is not None
    return textwrap.dedent(found[1])


def test_the_program_of_the_guide(library: Path, tmp_path: Path) -> None:
    source = _guide()
    headers = Path(os.environ["NEURONTOOLS_CORPUS"], "aws-neuron-sdk", "src", "libnrt", "include")
    program = compiled(source, library, tmp_path, f"-I{headers}")
    (tmp_path / "copy.neff").write_bytes(copying())
    X.tofile(tmp_path / "x.bin")
    done = _run(program, library, "copy.neff", "x", "x.bin")
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "DONE", done.stderr
    assert (np.fromfile(tmp_path / "y.out", np.float32) == X.ravel()).all()
    # An input without a file is zero.
    assert _run(program, library, "copy.neff").returncode == 0
    assert not np.fromfile(tmp_path / "y.out", np.float32).any()
    failed = _run(program, library, "copy.neff", "x", "x.bin", NEURONTOOLS_INJECT="hbm-ue")
    assert failed.returncode == 255 and "Error during model execution: 1201" in failed.stderr


LAYOUTS = r"""
#include <assert.h>
#include <nrt/nrt.h>
#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>
#include <nrt/nrt_profile.h>
#include <nrt/nrt_sys_trace.h>
#include <nrt/ndebug_stream.h>
#include <nrt/nrt_version.h>
#include <stdio.h>
#define SIZE(type) printf(#type " %zu\n", sizeof(type))
int main(void) { SIZES return 0; }
"""
_SIZED = re.findall(r"}\s*(\w+);", TYPES)


def test_structures_are_as_large_as_in_the_public_headers(library: Path, tmp_path: Path) -> None:
    corpus = os.environ.get("NEURONTOOLS_CORPUS")
    headers = Path(corpus or "", "aws-neuron-sdk", "src", "libnrt", "include")
    if not corpus or not headers.is_dir():
        pytest.skip("NEURONTOOLS_CORPUS names no folder with aws-neuron-sdk")
    sizes = "".join(f"SIZE({name});" for name in _SIZED)
    theirs = _run(compiled(LAYOUTS.replace("SIZES", sizes), library, tmp_path, f"-I{headers}"), library).stdout
    own = header() + LAYOUTS[LAYOUTS.index("#define") :].replace("SIZES", sizes)
    assert len(_SIZED) > 12 and _run(compiled(own, library, tmp_path), library).stdout == theirs


DUMPING = r"""
static char neff[1 << 20];
static float x[128 * 64];
int main(int argc, char **argv) {
    FILE *file = fopen(argv[1], "rb");
    size_t size = fread(neff, 1, sizeof neff, file);
    nrt_model_t *model;
    nrt_tensor_t *in, *out;
    nrt_tensor_set_t *inputs, *outputs;
    if (nrt_init(1, "", "") || nrt_load(neff, size, 0, 1, &model)) return 99;
    nrt_tensor_allocate(0, 0, sizeof x, "x", &in);
    nrt_tensor_allocate(0, 0, sizeof x, "y", &out);
    nrt_allocate_tensor_set(&inputs);
    nrt_allocate_tensor_set(&outputs);
    nrt_add_tensor_to_tensor_set(inputs, "x", in);
    nrt_add_tensor_to_tensor_set(outputs, "y", out);
    printf("%d\n", nrt_execute(model, inputs, outputs));
    nrt_close();
    return 0;
}
"""


@pytest.mark.parametrize(("inject", "data"), [("", out_of_bounds()), ("dma-abort:2", copying())])
def test_a_failure_leaves_a_dump_that_names_its_cause(library: Path, tmp_path: Path, inject: str, data: bytes) -> None:
    (tmp_path / "model.neff").write_bytes(data)
    program = compiled(header() + DUMPING, library, tmp_path)
    done = _run(
        program, library, "model.neff", NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY=str(tmp_path / "dumps" / "dt-%d-cid-%c"),
        NEURONTOOLS_INJECT=inject, NEURON_RT_DBG_DUMP_INPUTS_ON_ERR="1203" if inject else "1006",
    )  # fmt: skip
    status = S(int(done.stdout))
    assert status is (S.NRT_EXEC_HW_ERR_DMA_ABORT if inject else S.NRT_EXEC_OOB), done.stderr
    (folder,) = (tmp_path / "dumps").iterdir()
    names = sorted(each.name for each in folder.iterdir())
    assert re.fullmatch(r"dt-\d{4}-?\d\d-?\d\d-[\d-]+-cid-0{16}", folder.name)
    (core,) = [name for name in names if "-nd0-nc0-pid-" in name]
    dump = open_core(folder / core)
    assert dump.status is not None and dump.status.code == int(status)
    assert dump.fault is not None and ("injected: DMA engine" if inject else "out of bounds") in dump.fault.message
    (log,) = [name for name in names if name.endswith(".log")]
    story = read_story((folder / log).read_text().splitlines())
    assert story.blocks and story.blocks[0].status == status.name and story.first is not None
    (inputs,) = tmp_path.glob("input_dump_*_h_nn_1001")
    assert (inputs / "input0.bin").stat().st_size == X.nbytes and (inputs / "model_name.txt").is_file()
    assert f"1 input tensors were dumped successfully to directory {inputs}" in done.stderr
