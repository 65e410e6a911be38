"""Text in roff, as all manual pages need it."""

from __future__ import annotations

__all__ = ["roff", "title"]

DATE = "2026-11-22"  # of the last change that a reader would notice; the clock would make pages stale
_ESCAPES = str.maketrans({"\\": "\\e", "-": "\\-", "×": "\\(mu", '"': "\\(dq"})


def roff(text: str) -> str:
    """Return text that roff prints as it stands: no character of it is a request, a quote or an escape."""
    escaped = text.translate(_ESCAPES)
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


def title(name: str, section: int, manual: str) -> str:
    """Return the line that every page begins with: without a date in it, mandoc warns."""
    return f'.TH "{roff(name)}" "{section}" "{DATE}" "neurontools" "{manual}"'
