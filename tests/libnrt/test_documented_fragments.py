"""The C fragments of the public pages about traces: each, put into a program as it stands, compiles and runs."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.libnrt.test_programs import compiled

_PAGES = {
    "tools/neuron-explorer/how-to-profile-workload.rst": 2,
    "archive/profiler/neuron-profiler-2-0-beta-user-guide.rst": 3,
}
_PROGRAM = """#include <stdio.h>
#include <stdlib.h>
#include <stdbool.h>
#include <nrt/nrt.h>
%s
#ifndef nullptr  /* the pages' language is C++ in this */
#define nullptr NULL
#endif
int main(void) {
    if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS) return 1;
    {
%s
    }
    nrt_close();
    puts("DONE");
    return 0;
}
"""


def _fragments(page: str) -> list[str]:
    """Return the C fragments of a page, which is fetched and never kept."""
    corpus = os.environ.get("NEURONTOOLS_CORPUS")
    path = Path(corpus or "", "aws-neuron-sdk", page)
    if not corpus or not path.is_file():
        pytest.skip("NEURONTOOLS_CORPUS names no folder with aws-neuron-sdk")
    found = re.findall(r"\.\. code-block:: c\n\n((?:[ ]{3,}.*\n|\n)+)", path.read_text())
    return [textwrap.dedent(one) for one in found if "nrt_" in one]


@pytest.mark.parametrize("page", list(_PAGES))
def test_fragments_of_a_page(page: str, library: Path, tmp_path: Path) -> None:
    fragments = _fragments(page)
    assert len(fragments) == _PAGES[page]
    headers = Path(os.environ["NEURONTOOLS_CORPUS"], "aws-neuron-sdk", "src", "libnrt", "include")
    for number, fragment in enumerate(fragments):
        lines = fragment.splitlines()
        includes = "\n".join(line for line in lines if line.startswith("#include"))
        body = "\n".join(line for line in lines if not line.startswith("#include"))
        folder = tmp_path / str(number)
        folder.mkdir()
        program = compiled(_PROGRAM % (includes, body), library, folder, f"-I{headers}")
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("NEURON", "PYTHON", "VIRTUAL"))
        }
        done = subprocess.run([str(program)], capture_output=True, text=True, timeout=120, check=False, cwd=folder,
                              env={**kept, "LD_LIBRARY_PATH": str(library.parent)})  # fmt: skip
        assert done.returncode == 0 and done.stdout.splitlines()[-1] == "DONE", (fragment, done.stdout, done.stderr)
        if "Enabled event types" in fragment:
            wanted = ["Enabled event types: 2", "  model_load", "  nrt_execute", "DONE"]
            assert sorted(done.stdout.splitlines()) == sorted(wanted), done.stdout
