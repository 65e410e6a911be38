"""The manual page neuron-dump(1), in roff, from the table of flags."""

from __future__ import annotations

from formats.nrt.names import DEFAULT_LOCAL_DIRECTORY, PATH_VARIABLES
from neurontools.dump.flags import FLAGS
from tools import roff
from tools.roff import roff as _text

__all__ = ["PATH", "files", "page"]

PATH = "man/man1/neuron-dump.1"
_STATUSES = {
    "0": "The dump was collected, or was there already, or none was wanted.",
    "2": "The command line is empty.",
    "3": "Something that was asked for could not be written; what could be is there.",
    "70": "A bug of neuron-dump.",
}
_VARIABLES = {
    "NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY": f"Dump directory with its variables; the runtime's default is "
    f"{DEFAULT_LOCAL_DIRECTORY}.",
    "NEURON_RT_S3_CORE_DUMP_PREFIX": "Prefix for the upload, s3://bucket/prefix, with its variables.",
    "NEURON_RT_LOG_LOCATION": "Log file whose end is kept, unless --log names one.",
    "NEURON_RT_VISIBLE_CORES": "Cores whose state is read from sysfs, all without it.",
    "NEURONTOOLS_NEURON_DUMP": "Program that emulated runs call instead of this one.",
    "NEURONTOOLS_DUMP_LEVEL": "light or full: how much emulated runs dump.",
    "NEURONTOOLS_INSTANCE_ID": "Instance id of emulated runs, i-emulated without it.",
    "NEURONTOOLS_CLUSTER_ID": "Cluster id of emulated runs, sixteen zeros without it.",
    "NEURONTOOLS_CORE_FILE": "Set by emulated runs: the core dump to take over.",
    "NEURONTOOLS_LOG_FILE": "Set by emulated runs: the log to take the end of.",
    "AWS_ENDPOINT_URL": "Server to upload to, for boto3.",
}
_DESCRIPTION = """
Collect a core dump when an execution of the Neuron runtime fails.  The runtime calls
/opt/aws/neuron/bin/neuron-dump with the flags below; this program takes the same ones and can be put in its place.

The dump directory gets a file per physical core (INSTANCE-ndD-ncC-pid-P-tid-T-lid-L), the end of the runtime's log
(INSTANCE-nrt-pid-P.log), and a manifest (INSTANCE-neuron-dump-pid-P-tid-T-lid-L.json) with flags, environment,
packages, and what could not be had.  The core files are in the open format of neuron-core(5), not in AWS's, which is
not published.
Variables whose names speak of secrets are left out.

Files appear whole or not at all.  The manifest comes last: where it stands, the dump of that process is complete.  Many
processes may write into one directory; a second call with the same flags changes nothing.  A flag that is not known
is a warning, and nothing that is missing keeps the rest from being collected.

Called with a word instead of flags, it hands over: "neuron-dump why FILE" is "neurontools core why FILE", and so for
info, show, ls, triage and the others.  "neuron-dump recover DIR" gives the files of processes that were killed in the
last moment their names.
"""


def files() -> dict[str, str]:
    """Return the page by its path."""
    return {PATH: page()}


def page() -> str:
    """Return the roff of the page."""
    lines = [
        roff.title("NEURON-DUMP", 1, "User Commands"),
        ".SH NAME",
        "neuron\\-dump \\- collect a core dump when an execution of the Neuron runtime fails",
        ".SH SYNOPSIS",
        ".B neuron\\-dump",
        "\\fIFLAGS\\fR",
        ".br",
        ".B neuron\\-dump",
        "show|why|triage|... \\fIFILE\\fR",
        ".br",
        ".B neuron\\-dump",
        "recover \\fIDIR\\fR",
        ".SH DESCRIPTION",
    ]
    for number, text in enumerate(_DESCRIPTION.strip().split("\n\n")):
        lines += [*([".PP"] if number else []), _text(" ".join(text.split()))]
    for head, ours in (("FLAGS OF THE RUNTIME", False), ("FLAGS OF THIS PROGRAM", True)):
        lines.append(f".SH {head}")
        for flag in FLAGS:
            if bool(flag.cite) is not ours:
                default = f" [default: {flag.default}]" if flag.default else ""
                lines += [".TP", f"\\fB{_text(flag.name)}\\fR \\fI{flag.value}\\fR", _text(flag.meaning + default)]
    lines.append(".SH PATHS")
    lines.append("In the paths of the runtime's variables these stand for:")
    for letter, meaning in PATH_VARIABLES.items():
        lines += [".TP", f"\\fB%{letter}\\fR", _text(meaning)]
    lines.append(".SH EXIT STATUS")
    for status, meaning in _STATUSES.items():
        lines += [".TP", f"\\fB{status}\\fR", _text(meaning)]
    lines.append(".SH ENVIRONMENT")
    for name, meaning in _VARIABLES.items():
        lines += [".TP", f"\\fB{_text(name)}\\fR", _text(meaning)]
    lines += [".SH SEE ALSO", "\\fBneurontools\\fR(1), \\fBneurontools\\-core\\fR(1), \\fBneuron\\-core\\fR(5)"]
    return "\n".join(lines) + "\n"
