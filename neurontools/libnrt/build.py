"""Compile libnrt.so.1: C made from the table of functions, with the interpreter of this environment inside.

Every function of the interface is a few lines of C that start Python once and call its Python side; where Python does
not start, calls fail with NRT_FAILURE instead of cffi's silent zero.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from formats.errors import UnsupportedError
from formats.nrt.status import NrtStatus
from formats.whole_files import passing_folder
from neurontools.libnrt.functions import FUNCTIONS, TYPES, Function
from neurontools.version import install_with

__all__ = ["LIBRARY", "build", "c_source", "need_cffi", "need_compiler", "need_headers"]

LIBRARY = "libnrt.so.1"
_MODULE = "_neurontools_libnrt"
_INSTALL_CC = "apt-get install gcc, dnf install gcc, or set CC"
# What a call returns where Python does not start.
_FAILED = {"NRT_STATUS": f" {NrtStatus.NRT_FAILURE:d}", "void": "", "size_t": " 0"}
_STARTS = "static int _cffi_carefully_make_gil(void)\n{"
# cffi looks for its own module before any code of ours could run, and in a program's interpreter, which need not know
# this environment. So the interpreter is started, and told where to look, before cffi comes into play.
_READY = """
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static int ready(void) {
    static volatile int state;
    if (state) return state > 0;
    if (!Py_IsInitialized()) {
        pthread_mutex_lock(&starting);
        if (!Py_IsInitialized()) {
            Py_InitializeEx(0);
            PyRun_SimpleStringFlags(PROGRAM, NULL);
            PyEval_SaveThread();
        }
        pthread_mutex_unlock(&starting);
    }
    PyGILState_STATE held = PyGILState_Ensure();
    int found = PyRun_SimpleStringFlags(PLACES, NULL);
    PyGILState_Release(held);
    int started = found == 0 && neurontools_start() == 1;
    if (!started && !state) fputs("libnrt (neurontools): Python did not start; every call fails\\n", stderr);
    state = started ? 1 : -1;
    return started;
}"""
_PREAMBLE = """
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
"""


def need_compiler() -> str:
    """Return the C compiler; UnsupportedError says what to install."""
    for name in filter(None, (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang")):
        found = shutil.which(str(name).split()[0])
        if found is not None:
            return found
    raise UnsupportedError(f"no C compiler, which libnrt.so.1 is made with: {_INSTALL_CC}")


def need_headers() -> Path:
    """Return the folder of Python's headers; UnsupportedError says what to install."""
    headers = Path(sysconfig.get_paths()["include"])
    if not (headers / "Python.h").is_file():
        raise UnsupportedError(f"{headers}/Python.h is missing: install python3-dev (dnf: python3-devel)")
    return headers


def need_cffi() -> None:
    """Raise UnsupportedError where cffi is not installed."""
    try:
        import cffi  # noqa: F401  # deferred: optional cffi
    except ImportError:
        raise UnsupportedError(
            f"cffi is not installed, which libnrt.so.1 is made with: {install_with('nrt')}"
        ) from None


def _wrappers() -> Iterator[str]:
    yield TYPES
    yield "int neurontools_start(void);"
    # A C program's interpreter has no executable of its own; the collector is started with this one.
    program = f"import sys\nsys.executable = {sys.executable!r}\n"
    yield _READY.replace("PLACES", json.dumps(_places_code())).replace("PROGRAM", json.dumps(program))
    yield from map(_wrapper, FUNCTIONS)


def _wrapper(function: Function) -> str:
    arguments = ", ".join(parameter.name for parameter in function.parameters)
    inner = function._replace(name=f"py_{function.name}")
    back = "" if function.returns == "void" else "return "
    return (
        f"{inner.prototype};\n"
        f'__attribute__((visibility("default"))) {function.prototype} {{\n'
        f"    if (!ready()) return{_FAILED.get(function.returns, ' NULL')};\n"
        f"    {back}{inner.name}({arguments});\n}}"
    )


def _places_code() -> str:
    """Return Python that finds the modules of this environment behind the program's own."""
    places = [str(Path(__file__).resolve().parents[2]), *(place for place in sys.path if place)]
    return f"import sys\nsys.path += [place for place in {places!r} if place not in sys.path]\n"


_INIT = f"""
from {_MODULE} import ffi, lib

@ffi.def_extern(error=0)
def neurontools_start():
    from neurontools.libnrt.start import start
    start(ffi, lib)
    return 1
"""


def c_source() -> str:
    """Return the C source of the library."""
    need_cffi()
    from cffi import FFI  # deferred: optional cffi

    maker = FFI()
    # `calloc` and `free` are the C library's own: clients free with `free` what some calls give them.
    maker.cdef(TYPES + "\nvoid *calloc(size_t, size_t);\nvoid free(void *);\n")
    inner = (function._replace(name=f"py_{function.name}").prototype for function in FUNCTIONS)
    maker.embedding_api("\n".join(["int neurontools_start(void);", *(f"{one};" for one in inner)]))
    maker.embedding_init_code(_INIT)
    maker.set_source(_MODULE, _PREAMBLE + "\n".join(_wrappers()))
    with passing_folder("libnrt") as folder:
        path = folder / "libnrt.c"
        with redirect_stdout(StringIO()):  # it says where it writes
            maker.emit_c_code(str(path))
        source = path.read_text(encoding="utf-8")
    # cffi guards the start of an interpreter with a field of PyCapsule_Type, which an interpreter that runs already may
    # have used for itself (seen with nanobind on Python 3.11); there is nothing to start then.
    return source.replace(_STARTS, _STARTS + "\n    if (Py_IsInitialized()) return 0;", 1)


def _python_flags() -> list[str]:
    """Return how to link this interpreter; one without a shared library can only be entered from its own processes."""
    variables = sysconfig.get_config_vars()
    if not variables.get("Py_ENABLE_SHARED"):
        return []
    folder = str(variables.get("LIBDIR", ""))
    name = f"python{variables['LDVERSION']}"
    return [f"-L{folder}", f"-Wl,-rpath,{folder}", f"-l{name}"]


def build(into: Path) -> list[str]:
    """Write libnrt.so.1 and the link libnrt.so into a folder; return notes for people.

    Raises UnsupportedError without cffi, a compiler or Python's headers, and where the compiler fails.
    """
    need_cffi()
    compiler, headers = need_compiler(), need_headers()
    source = c_source()
    with passing_folder("libnrt") as place:
        (place / "libnrt.c").write_text(source, encoding="utf-8")
        (place / "exports").write_text("{ global: nrt_*; nrta_*; local: *; };\n", encoding="utf-8")
        command = [
            compiler, "-shared", "-fPIC", "-O2", "-fvisibility=hidden", f"-I{headers}", f"-Wl,-soname,{LIBRARY}",
            f"-Wl,--version-script={place / 'exports'}",
            "-o", str(place / LIBRARY), str(place / "libnrt.c"), *_python_flags(), "-lpthread",
        ]  # fmt: skip
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if ended.returncode:
            said = " / ".join(line for line in ended.stderr.splitlines() if "error" in line)[:400]
            raise UnsupportedError(f"{compiler} cannot make {LIBRARY}: {said or ended.stderr[:400]}")
        shutil.copyfile(place / LIBRARY, into / LIBRARY)
    (into / LIBRARY).chmod(0o755)
    link = into / "libnrt.so"
    link.unlink(missing_ok=True)
    link.symlink_to(LIBRARY)
    if not _python_flags():
        return [f"{sys.executable} has no shared library: {LIBRARY} serves programs of this Python, not C programs"]
    return []
