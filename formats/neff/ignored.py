"""What a NEFF says and this toolkit does not act on: every key and value that may be ignored, and why.

Anything else that no reader has a name for is not executed (see formats.neff.understood). `files` is how many of the 50
readable public files of three courses and one paper show it.
"""

from __future__ import annotations

from formats.named_tuple import NamedTuple

__all__ = ["IGNORED", "IGNORED_MEMBERS", "OWN_MEMBERS", "Ignored", "may_be_ignored"]


class Ignored(NamedTuple):
    """A key of one kind of JSON object that may be ignored at these values; None stands for any value."""

    kind: str
    key: str
    values: tuple[object, ...] | None
    reason: str
    files: int


# What every gen3 file says of fp8; what other values would change is not public.
_FP8 = {
    "emax_fp8_e4m3": 8,
    "emax_fp8_e5m2": 15,
    "fp8_range_extension": True,
    "fp8_sis": False,
    "fp8_sns": False,
    "ocp_sat": True,
}
_TABLES = "names the default microcode of the vector engine, whose operations the words name by opcode"

IGNORED: tuple[Ignored, ...] = (
    Ignored("graph", "metadata", None, "repeats the signature that nodes and attrs give", 50),
    Ignored("graph attrs", "storage_id", None, "numbers the tensors for TVM's own allocator", 50),
    Ignored("node", "is_param", ("0",), "no input is a parameter kept from call to call", 50),
    Ignored("node attrs", "func_name", ("__kelf",), "calls the compiled part, the one function there is", 50),
    Ignored("node attrs", "flatten_data", ("0",), "leaves tensors in their shapes", 50),
    Ignored("node attrs", "num_inputs", None, "repeats the number of inputs", 50),
    Ignored("node attrs", "num_outputs", None, "repeats the number of outputs", 50),
    Ignored("kelf", "version", None, "versions the layout, whose keys are looked at one by one", 50),
    Ignored("definition", "version", None, "versions the layout, whose keys are looked at one by one", 50),
    Ignored("definition", "debug_info", ({},), "is empty", 50),
    Ignored("definition", "cc_streams", ({}, {"num_streams": 0}), "asks for no stream of collectives", 48),
    Ignored("definition", "#rank_world_size", (0,), "names no other rank", 48),
    Ignored("definition", "fp8_conversion_config", ({}, _FP8), "is what the conversions here were checked with", 10),
    Ignored("variable", "ops", ([],), "is empty", 50),
    Ignored("variable", "fabric_path", ("main",), "chooses the way that bytes take, the default one", 44),
    Ignored("queue", "fabric_path", ("main",), "chooses the way that bytes take, the default one", 50),
    Ignored("queue", "pinned", None, "says where the runtime keeps a ring, not what it moves", 0),
    Ignored("engine", "act_semaphore", None, "no word or queue of any file refers to it", 50),
    Ignored("activation set", "func_to_ctl_start_idx", None, "repeats where the profile says the controls begin", 35),
    Ignored("activation set", "func_exp_to_bkt_start_idx", None, "says of each exponent what the controls say", 35),
    Ignored("activation set", "func_exp_to_ctl_start_idx", None, "says of each exponent what the profile says", 35),
    Ignored("activation profile", "imm_bias", (0, 1), "the functions compute what they are called either way", 35),
    Ignored("activation profile", "lower_bound", (0, 0xFF7FFFFF), "bounds nothing: the least finite number", 35),
    Ignored("activation profile", "upper_bound", (0, 0x7F7FFFFF), "bounds nothing: the greatest finite number", 35),
    Ignored("dve table", "control_table", ("default_control_table.bin",), _TABLES, 2),
    Ignored("dve table", "control_fast_table", ("default_control_fast_table.bin",), _TABLES, 48),
    Ignored("dve table", "control_slow_table", ("default_control_slow_table.bin",), _TABLES, 48),
    Ignored("dve table", "datapath_table", ("default_datapath_table.bin",), _TABLES, 50),
    Ignored("dve table", "opcode_table", ("default_opcode_table.bin",), _TABLES, 50),
    Ignored("block", "#comment", None, "names the block for people", 40),
    Ignored("descriptor", "num_tiling_dimensions", (1,), "is the default", 40),
    Ignored("descriptor", "constant", None, "bounds min and max; other operations are documented without one", 0),
    Ignored("descriptor", "constant_dtype", None, "bounds min and max; other operations are documented without one", 0),
    Ignored("transpose", "num_tiling_dimensions", (1, 2), "the blocks of a transpose follow from its sizes", 8),
)
# Members whose keys are not looked at one by one, by how their names end.
IGNORED_MEMBERS: dict[str, str] = {
    "info.json": "names compiler and build",
    "hlo_stats.json": "counts what the compiler was given",
    "metrics.json": "counts what the compiler did",
    "tensor_map.json": "names tensors for people; a variable's size, offset and file stand in def.json",
    "act_info.json": "lists the sets there are; those that are used are named by Activation.json",
    ".dbg": "names the source of words",
}
# Members of subgraphs that no compiler but this one writes; readers of this toolkit look for them by name.
OWN_MEMBERS = ("operations.json", "visits.json", "tiles.json", "fresh.json")
_IGNORED = {(each.kind, each.key): each for each in IGNORED}


def may_be_ignored(kind: str, key: str, value: object) -> bool:
    """Return whether the list has the key at this value; True and 1 are different values."""
    found = _IGNORED.get((kind, key))
    if found is None:
        return False
    return found.values is None or _text(value) in map(_text, found.values)


def _text(value: object) -> str:
    return repr(sorted(value.items())) if isinstance(value, dict) else repr(value)
