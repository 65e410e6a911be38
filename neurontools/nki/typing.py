"""`nki.typing`: annotations of kernel arguments, which carry no behaviour."""

from __future__ import annotations

from typing import Any

__all__ = ["mutable_tensor", "scalar", "tensor"]


class Annotation:
    """An annotation such as `tensor[128, 512]`: takes any subscript and any call, and returns itself."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, key: Any) -> Annotation:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Annotation:
        return self

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"nki.typing.{self.name}"


tensor = Annotation("tensor")
mutable_tensor = Annotation("mutable_tensor")
scalar = Annotation("scalar")
