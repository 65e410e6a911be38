"""Pass `expand`: operations that have no lowering of their own become several that have.

Windows become strided slices, convolutions a product over gathered patches, sorts networks of comparisons.
"""

from __future__ import annotations

from neurontools.compiler.expand_calls import CALLS
from neurontools.compiler.expand_collectives import COLLECTIVES
from neurontools.compiler.expand_convolution import CONVOLUTIONS
from neurontools.compiler.expand_dots import DOTS
from neurontools.compiler.expand_folds import FOLDS
from neurontools.compiler.expand_norms import NORMS
from neurontools.compiler.expand_random import RANDOM
from neurontools.compiler.expand_sort import SORTS
from neurontools.compiler.expand_windows import WINDOWS
from neurontools.compiler.graph import Graph
from neurontools.compiler.rewriting import Rule, rewrite

__all__ = ["EXPANDED", "expand"]

_RULES: dict[str, Rule] = {**WINDOWS, **CONVOLUTIONS, **SORTS, **NORMS, **CALLS, **COLLECTIVES, **RANDOM}
EXPANDED = frozenset(_RULES)


def expand(graph: Graph) -> Graph:
    """Return the graph in operations that have a lowering."""
    return rewrite(rewrite(rewrite(graph, FOLDS), _RULES), DOTS)
