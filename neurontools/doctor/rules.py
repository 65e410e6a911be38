"""The checks of an environment, one function a topic; every finding names its source and what to do.

Sources: runtime.md 3.1, 5, 6.1, 7, 19, 19.1.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from formats.named_tuple import NamedTuple
from formats.nrt.environment import PROFILE_BUFFERS, misfit, nearest, parse_cpus, variable
from formats.nrt.memory import PAGE_SIZES
from formats.nrt.names import PATH_VARIABLES
from formats.numerals import parse_decimal
from neurontools.doctor.findings import EnvironmentFinding, found

if TYPE_CHECKING:
    from emulator.machine.instances import Instance
    from neurontools.doctor.host import NumaNode

__all__ = ["RULES", "Workload", "examine"]

_V = "runtime.md 19.1"
_OURS = re.compile(r"NEURON(?:_|CORE_)", re.ASCII)
_TOOLKIT = "NEURONTOOLS_"
_LONGEST_NAME = 255  # of a file on Linux
_OTHERS = ("FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA", "FI_EFA_FORK_SAFE")


class Workload(NamedTuple):
    """What is examined: the variables, the instance, its NUMA nodes, the CPUs of the process, the LNC of a NEFF.

    `here` is whether the variables are of this very machine, so that folders can be looked at.
    """

    variables: Mapping[str, str]
    instance: Instance
    lnc_most: int
    cores: int
    nodes: tuple[NumaNode, ...] = ()
    cpus: tuple[int, ...] | None = None
    neff: tuple[str, int] | None = None
    nodes_of_job: int = 1
    here: bool = False

    @property
    def lnc(self) -> int:
        """Return the physical cores of a logical core that the variables ask for, or the chip's usual number."""
        text = self.variables.get("NEURON_LOGICAL_NC_CONFIG") or self.variables.get("NEURON_RT_VIRTUAL_CORE_SIZE")
        return int(text) if text in ("1", "2") else self.lnc_most

    def on(self, name: str) -> bool:
        """Return whether a flag is set."""
        return self.variables.get(name, "").strip().lower() in ("1", "true")


def names(work: Workload) -> Iterator[EnvironmentFinding]:
    """Find names that are not documented or not read any more, and values that do not fit."""
    for name, value in work.variables.items():
        if name.startswith(_TOOLKIT) or not (_OURS.match(name) or variable(name)):
            continue
        known = variable(name)
        if known is None:
            yield _unknown(name, value)
        elif known.gone:
            yield found("removed", name, value, f"{name} is {known.gone}", known.instead, known.cite)
        elif value.strip() or known.kind not in ("text", "folder"):
            wanted = misfit(known, value)
            if wanted is not None:
                yield found("value", name, value, f"{name}={value} is no value of it", f"use {wanted}", known.cite)


def _unknown(name: str, value: str) -> EnvironmentFinding:
    near = nearest(name)
    if name.startswith("NEURON_RT_PROFILE_BUF_"):
        kinds = ", ".join(PROFILE_BUFFERS)
        return found("unknown", name, value, f"{name} names no buffer of the profiler", f"use one of {kinds}", _V)
    if name.endswith("_KMGR"):
        near = name.removesuffix("_KMGR") + "_NMGR"
    fix = f"did you mean {near}?" if near else "remove it"
    return found("unknown", name, value, f"{name} is not documented", fix, "runtime.md 19")


def cores(work: Workload) -> Iterator[EnvironmentFinding]:
    """Find cores that are not there, and two ways to ask for cores at once."""
    visible, number = work.variables.get("NEURON_RT_VISIBLE_CORES"), work.variables.get("NEURON_RT_NUM_CORES")
    asked = parse_decimal(number or "")
    total = work.cores // work.lnc
    what = f"{work.instance.name} with LNC {work.lnc} has {total}"
    if visible is not None and (wanted := parse_cpus(visible)):
        if max(wanted) >= total:
            yield found("cores", "NEURON_RT_VISIBLE_CORES", visible, f"core {max(wanted)} is not there: {what}",
                        f"use numbers from 0 to {total - 1}", _V)  # fmt: skip
        if number is not None and asked is not None and asked != len(wanted):
            yield found("contradiction", "NEURON_RT_NUM_CORES", number,
                        f"NEURON_RT_VISIBLE_CORES={visible} wins over NEURON_RT_NUM_CORES={number}",
                        "set one of the two", _V)  # fmt: skip
    elif number is not None and asked is not None and asked > total:
        yield found("cores", "NEURON_RT_NUM_CORES", number, f"{number} cores are asked for; {what}",
                    f"ask for {total} at most", _V)  # fmt: skip


def lnc(work: Workload) -> Iterator[EnvironmentFinding]:
    """Find sizes of logical cores that contradict each other, the chip or the NEFF."""
    one, two = "NEURON_LOGICAL_NC_CONFIG", "NEURON_RT_VIRTUAL_CORE_SIZE"
    a, b = work.variables.get(one), work.variables.get(two)
    if a and b and a != b:
        yield found("lnc", two, b, f"{two}={b} contradicts {one}={a}", "set one of the two", _V)
    text = a or b
    name = one if a else two
    if text == "2" and work.lnc_most == 1:
        yield found("lnc", name, text, f"{work.instance.name} has no logical cores of two", f"remove {name}",
                    "runtime.md 1.1")  # fmt: skip
    if work.neff is not None and work.neff[1] != work.lnc:
        file, made = work.neff
        yield found("lnc", name if text else one, text or "", f"{file} is made for LNC {made}, cores are of {work.lnc}",
                    f"set {one}={made}, or compile with --lnc {work.lnc}", "runtime.md 2.2")  # fmt: skip


def scratchpad(work: Workload) -> Iterator[EnvironmentFinding]:
    """Find scratchpad settings that do nothing, or that runtime and compiler disagree on."""
    paged = work.lnc == 1 and work.instance.target in ("trn2", "trn3")
    asked = work.variables.get("NEURON_RT_CONTIGUOUS_SCRATCHPAD")
    if work.on("NEURON_RT_CONTIGUOUS_SCRATCHPAD") and paged:
        yield found("no-effect", "NEURON_RT_CONTIGUOUS_SCRATCHPAD", asked or "",
                    f"contiguous scratchpad is not supported on {work.instance.target} with LNC 1",
                    "remove it, and choose a page size", "runtime.md 3.1")  # fmt: skip
    page = work.variables.get("NEURON_SCRATCHPAD_PAGE_SIZE")
    size = parse_decimal(page or "")
    if page is not None and size is not None:
        step = PAGE_SIZES.step
        if size % step:
            yield found("page-size", "NEURON_SCRATCHPAD_PAGE_SIZE", page, f"{page} MB is no multiple of {step}",
                        f"use {max(PAGE_SIZES[0], size // step * step)}", _V)  # fmt: skip
        if not paged and asked != "0":
            yield found("no-effect", "NEURON_SCRATCHPAD_PAGE_SIZE", page,
                        "shared scratchpad is contiguous here since runtime 2.33, and has no pages",
                        "remove it, or set NEURON_RT_CONTIGUOUS_SCRATCHPAD=0", "runtime.md 3.1")  # fmt: skip
    compiler = _compiler_page(work.variables.get("NEURON_CC_FLAGS", ""))
    usual = str(PAGE_SIZES[0])
    if compiler is not None and compiler != (page or usual):
        yield found("page-size", "NEURON_SCRATCHPAD_PAGE_SIZE", page or "",
                    f"the compiler lays variables out for pages of {compiler} MB, the runtime has {page or usual}",
                    f"set NEURON_SCRATCHPAD_PAGE_SIZE={compiler}", "runtime.md 3.1")  # fmt: skip
    elif page is not None and compiler is None and size not in (None, PAGE_SIZES[0]) and (paged or asked == "0"):
        yield found("page-size", "NEURON_CC_FLAGS", work.variables.get("NEURON_CC_FLAGS", ""),
                    f"the compiler does not know of pages of {page} MB",
                    f"add --hbm-scratchpad-page-size={page} to NEURON_CC_FLAGS", "runtime.md 3.1")  # fmt: skip


def _compiler_page(flags: str) -> str | None:
    try:
        words = shlex.split(flags)
    except ValueError:
        return None
    for at, word in enumerate(words):
        name, _, value = word.partition("=")
        if name == "--hbm-scratchpad-page-size":
            return value or (words[at + 1] if at + 1 < len(words) else None)
    return None


def profiling(work: Workload) -> Iterator[EnvironmentFinding]:
    """Find profiling that is off although configured, or on."""
    configured = [name for name in work.variables if name.startswith("NEURON_RT_INSPECT_")
                  and name not in ("NEURON_RT_INSPECT_ENABLE", "NEURON_RT_INSPECT_ON_FAIL")
                  and (known := variable(name)) is not None and not known.gone]  # fmt: skip
    if work.on("NEURON_RT_INSPECT_ENABLE"):
        device = work.variables.get("NEURON_RT_INSPECT_DEVICE_PROFILE", "0") != "0"
        buffers = "; device profiles take about 2 GB a core" if device else ""
        yield found("profiling", "NEURON_RT_INSPECT_ENABLE", "1", f"profiling is on{buffers}",
                    "switch it off for measurements and production", _V)  # fmt: skip
    elif configured:
        yield found("no-effect", configured[0], work.variables[configured[0]],
                    f"NEURON_RT_INSPECT_ENABLE is not 1: {', '.join(configured)} without effect",
                    "set NEURON_RT_INSPECT_ENABLE=1", _V)  # fmt: skip
    if work.on("NEURON_RT_ENABLE_DGE_NOTIFICATIONS"):
        yield found("profiling", "NEURON_RT_ENABLE_DGE_NOTIFICATIONS", "1",
                    "DGE notifications cost time, and large NEFFs may time out", "set it for profiles only",
                    _V)  # fmt: skip
    if "NEURON_RT_STOCHASTIC_ROUNDING_SEED" in work.variables and not work.on("NEURON_RT_STOCHASTIC_ROUNDING_EN"):
        yield found("no-effect", "NEURON_RT_STOCHASTIC_ROUNDING_SEED",
                    work.variables["NEURON_RT_STOCHASTIC_ROUNDING_SEED"], "stochastic rounding is off",
                    "set NEURON_RT_STOCHASTIC_ROUNDING_EN=1", "runtime.md 19")  # fmt: skip


def affinity(work: Workload) -> Iterator[EnvironmentFinding]:
    """Find CPUs of latency-sensitive threads that are not there, not balanced, or the application's too."""
    name = "NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY"
    value = work.variables.get(name)
    wanted = parse_cpus(value) if value else None
    if not wanted or value is None:
        return
    vcpus = work.instance.vcpus.whole
    if max(wanted) >= vcpus:
        yield found("affinity", name, value, f"CPU {max(wanted)} is not there: {work.instance.name} has {vcpus}",
                    f"use numbers from 0 to {vcpus - 1}", "runtime.md 5")  # fmt: skip
    each = {node.node: sum(cpu in node.cpus for cpu in wanted) for node in work.nodes}
    if len(each) > 1 and len(set(each.values())) > 1:
        spread = ", ".join(f"{count} of node {node}" for node, count in each.items())
        yield found("affinity", name, value, f"not balanced over NUMA nodes: {spread}",
                    "take as many CPUs of each node; `neurontools doctor numa` has a list", "runtime.md 5")  # fmt: skip
    if work.cpus is not None:
        shared = sorted(set(wanted) & set(work.cpus))
        if shared:
            yield found("affinity", name, value, f"the application may run on {len(shared)} of these CPUs too",
                        "keep it off with taskset; `neurontools doctor numa` has a list", "runtime.md 5")  # fmt: skip


def folders(work: Workload) -> Iterator[EnvironmentFinding]:
    """Find folders of dumps, profiles and caches that cannot be written, and patterns that nobody expands."""
    local, remote = "NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", "NEURON_RT_S3_CORE_DUMP_PREFIX"
    values = work.variables
    if values.get(local) == "" and values.get(remote) == "":
        yield found("dumps-off", local, "", "core dumps are off: both variables are empty", f"unset {local}",
                    "runtime.md 6.1")  # fmt: skip
    for name in (local, remote):
        strange = [one for one in re.findall(r"%(.?)", values.get(name, "")) if one not in PATH_VARIABLES]
        if strange:
            known = ", ".join(f"%{one}" for one in PATH_VARIABLES)
            yield found("folder", name, values[name], f"%{strange[0]} is no variable of a dump's path", f"use {known}",
                        "runtime.md 6.1")  # fmt: skip
    if values.get(remote) and not values[remote].startswith("s3://"):
        yield found("folder", remote, values[remote], "not a prefix in S3", "begin it with s3://", "runtime.md 6.1")
    if not work.here:
        return
    for name in (local, "NEURON_RT_INSPECT_OUTPUT_DIR", "NEURON_COMPILE_CACHE_URL"):
        value = values.get(name, "")
        if not value or "://" in value:
            continue
        place = Path(value.split("%", 1)[0] or ".")
        if "%" in value and not value.split("%", 1)[0].endswith("/"):
            place = place.parent
        # os.path.exists: a name that is too long is one more reason why a folder cannot be made
        while not os.path.exists(place) and place != place.parent and len(place.name) <= _LONGEST_NAME:
            place = place.parent
        if not os.path.isdir(place) or not os.access(place, os.W_OK):
            cite = "runtime.md 6.1" if name == local else "runtime.md 19"
            fix = "choose another folder, or change its mode"
            yield found("folder", name, value, f"{place} cannot be written", fix, cite)


def collectives(work: Workload) -> Iterator[EnvironmentFinding]:
    """Find what collectives across instances need and do not have."""
    values = work.variables
    root = "NEURON_RT_ROOT_COMM_ID"
    if work.nodes_of_job > 1:
        for name, wanted in (("FI_PROVIDER", "efa"), ("FI_EFA_USE_DEVICE_RDMA", "1"), (root, "")):
            if name not in values or (wanted and values[name] != wanted):
                needs = wanted or "<address>:<port> of the first rank"
                yield found("collectives", name, values.get(name, ""), f"{work.nodes_of_job} instances need {name}",
                            f"set {name}={needs}", "runtime.md 7")  # fmt: skip
    elif values.get("FI_PROVIDER", "efa") != "efa":
        yield found("collectives", "FI_PROVIDER", values["FI_PROVIDER"], "collectives run over EFA only",
                    "set FI_PROVIDER=efa", "runtime.md 7")  # fmt: skip


RULES: tuple[Callable[[Workload], Iterator[EnvironmentFinding]], ...] = (
    names, cores, lnc, scratchpad, profiling, affinity, folders, collectives,
)  # fmt: skip
_ORDER = {"error": 0, "warning": 1, "note": 2}


def examine(work: Workload) -> list[EnvironmentFinding]:
    """Return everything that the rules find, the worst first."""
    return sorted((one for rule in RULES for one in rule(work)), key=lambda one: _ORDER[one.severity])
