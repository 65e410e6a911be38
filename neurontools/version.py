"""What this project is called where it is installed, its version, and how its extras are: said once, here."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DISTRIBUTION", "__version__", "install_with"]

__version__ = "0.1.0"
DISTRIBUTION = "neurontools"


def install_with(extra: str) -> str:
    """Return the command that installs this project with an extra.

    In a checkout it names the checkout: whoever has one need not trust what a registry has under that name.
    """
    root = Path(__file__).resolve().parents[1]
    place = str(root) if (root / "pyproject.toml").is_file() else DISTRIBUTION
    return f"pip install '{place}[{extra}]'"
