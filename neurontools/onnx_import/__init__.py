"""Make HLO modules of ONNX models: a thin importer, each operator a few lines.

What ONNX itself defines by a function of other operators is lowered by that function.
"""

from __future__ import annotations

from neurontools.onnx_import.importing import Imported, import_model
from neurontools.onnx_import.registry import OPERATORS

__all__ = ["OPERATORS", "Imported", "import_model"]
