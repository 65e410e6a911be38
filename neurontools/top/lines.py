"""The dashboard as lines of text, for any width: what the screen and `--once` show."""

from __future__ import annotations

from neurontools.text.table import bytes_text, table
from neurontools.top.figures import CoreUse, Figures

__all__ = ["core_lines", "memory_lines", "tab_line", "text_lines", "title_line", "tree_lines", "vcpu_lines"]

_BAR = 10


def title_line(found: Figures, extra: str = "") -> str:
    """Return the instance, and what else is to be said."""
    return f"neurontools top  {found.instance_id} ({found.instance_type}){extra}"


def _core(one: CoreUse, flops: bool) -> str:
    filled = min(_BAR, round(one.percent / 100 * _BAR))
    value = (f"{one.tflops:6.2f}T" if one.tflops is not None else "     -T") if flops else f"{one.percent:6.2f}%"
    return f"NC{one.core:<3} [{'#' * filled}{' ' * (_BAR - filled)}]{value}"


def core_lines(found: Figures, width: int, flops: bool = False, most: int | None = None) -> list[str]:
    """Return the cores in as many columns as fit; with `most`, only so many lines, busy cores before idle ones."""
    cells = [_core(one, flops) for one in found.cores]
    each = max((len(cell) for cell in cells), default=1) + 2
    columns = max(1, width // each)
    what = "TFLOPS" if flops else "Utilization"
    head = f"NeuronCore {found.core_version} {what}".replace("  ", " ")
    rows = -(-len(cells) // columns)
    if most is not None and rows > most - 1:
        kept = max(1, (most - 1) * columns)
        busy = sorted(found.cores, key=lambda one: (-one.percent, one.core))[:kept]
        left = sum(one.percent == 0 for one in found.cores) - sum(one.percent == 0 for one in busy)
        head += f" (busiest {len(busy)}; {left} more are idle)"
        cells = [_core(one, flops) for one in sorted(busy)]
        rows = -(-len(cells) // columns)
    return [head, *("  ".join(cells[row::rows]).rstrip() for row in range(rows))]


def vcpu_lines(found: Figures) -> list[str]:
    """Return the CPUs' shares in user and system code: of the whole system, and of the programs."""
    system = f"System vCPU usage {found.system_user:6.2f}% {found.system_system:6.2f}%"
    return [f"{system}   Runtime vCPU usage {found.runtime_user:6.2f}% {found.runtime_system:6.2f}%"]


def memory_lines(found: Figures) -> list[str]:
    """Return the summary of memory: host on the left, device on the right."""
    left = [("Host Used Memory", bytes_text(found.host_total))]
    left += [(f"  {name}", bytes_text(value)) for name, value in found.host.items()]
    right = [("Device Used Memory", bytes_text(found.device_total))]
    right += [(f"  {name}", bytes_text(value)) for name, value in found.device.items()]
    lines = []
    for row in range(max(len(left), len(right))):
        a, b = (side[row] if row < len(side) else ("", "") for side in (left, right))
        lines.append(f"{a[0]:<18}{a[1]:>12}   {b[0]:<20}{b[1]:>12}".rstrip())
    return lines


def tree_lines(found: Figures, open_to: int = 2) -> list[str]:
    """Return the tree of memory down to a level."""
    rows = [
        ["  " * one.level + one.label, "" if one.model_id is None else str(one.model_id), bytes_text(one.host),
         bytes_text(one.device)]
        for one in found.tree if one.level <= open_to
    ]  # fmt: skip
    return ["Memory Usage Details", *table(["", "Model ID", "Host Memory", "Device Memory"], rows)]


def tab_line(found: Figures) -> str:
    """Return the tabs, the chosen one between angle brackets."""
    return "  ".join(f">{tab}<" if tab == found.tab else f"[{number}]{tab}" for number, tab in enumerate(found.tabs, 1))


def text_lines(found: Figures, width: int = 100, flops: bool = False) -> list[str]:
    """Return the whole dashboard."""
    parts = [[title_line(found)], core_lines(found, width, flops), vcpu_lines(found), memory_lines(found),
             tree_lines(found), [tab_line(found)]]  # fmt: skip
    lines: list[str] = []
    for part in parts:
        lines += [*part, ""]
    return lines[:-1]
