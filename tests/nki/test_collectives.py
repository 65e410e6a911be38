"""Collectives: complete for a group of one rank, refused with the reason beyond it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.collectives as ncc
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats.errors import UnsupportedError
from tests.nki.support import trace_body

ONE = ncc.ReplicaGroup([[0]])
X = np.arange(200 * 6, dtype=np.float32).reshape(200, 6)
Y = X[::-1].copy()


def copies(srcs: Any, dsts: Any) -> list[Any]:
    """Return every collective that gives a single rank its own data back."""
    return [
        lambda: ncc.all_reduce(srcs, dsts, ONE, nl.add),
        lambda: ncc.all_gather(srcs, dsts, ONE, 0),
        lambda: ncc.reduce_scatter(srcs, dsts, ONE, 0, nl.maximum),
        lambda: ncc.all_to_all(srcs, dsts, ONE, 0),
        lambda: ncc.collective_permute(srcs, dsts, [(0, 0)]),
        lambda: ncc.collective_permute_implicit([srcs], [dsts], ONE),
    ]


@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_one_rank_receives_its_own_data(which: int, target: str) -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        copies([x], [out])[which]()
        return out

    assert (nki.jit(kernel, platform_target=target)(X) == X).all()


@pytest.mark.parametrize(("op", "function"), [("add", np.add), ("minimum", np.minimum), ("maximum", np.maximum)])
def test_a_ring_of_one_reduces_its_own_sources(op: str, function: Any) -> None:
    def kernel(x: Any, y: Any) -> Any:
        out, rows = nl.ndarray(x.shape, x.dtype, nl.shared_hbm), nl.ndarray((1, 6), x.dtype, nl.shared_hbm)
        ncc.collective_permute_implicit_reduce([[x]], [[y]], [[out]], ONE, getattr(nl, op))
        for rank in (ncc.collective_permute_implicit_current_processing_rank_id(0, ONE), ncc.rank_id()):
            tile = nl.ndarray((1, 6), x.dtype, nl.sbuf)
            nisa.dma_copy(tile, x.ap([[6, 1], [1, 6]], scalar_offset=rank, indirect_dim=0))
            nisa.dma_copy(rows, tile)
        return out, rows

    out, rows = nki.jit(kernel)(X, Y)
    assert (out == function(X, Y)).all() and (rows == X[:1]).all()


def hbm(*shape: int, dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype, nl.shared_hbm)


WIDE = ncc.ReplicaGroup([[0, 1]])
REFUSED: list[tuple[Any, str]] = [
    (lambda: ncc.all_reduce([hbm(4, 4)], [hbm(4, 4)], WIDE, nl.add), "all_reduce over 2 ranks"),
    (lambda: ncc.all_gather([hbm(4, 4)], [hbm(8, 4)], WIDE, 0), "all_gather over 2 ranks"),
    (lambda: ncc.collective_permute([hbm(4, 4)], [hbm(4, 4)], [(0, 1), (1, 0)]), "collective_permute over 2 ranks"),
    (lambda: ncc.all_gather_v([hbm(4)], [hbm(4)], ONE, hbm(3, 1, dtype=nl.uint32)), "all_gather_v"),
    (lambda: ncc.all_to_all_v([hbm(4)], [hbm(4)], ONE, hbm(3, 1, dtype=nl.uint32)), "all_to_all_v"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_other_ranks_are_refused(call: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message + ".*not supported yet, at .*test_collectives"):
        trace_body(call)


LIMITS: list[tuple[Any, str]] = [
    (lambda: ncc.all_reduce([hbm(4)], [hbm(4)], ONE, nl.multiply), "op is nl.multiply, must be nl.add"),
    (lambda: ncc.all_reduce([hbm(4)], [hbm(4)], [[0], [0]], nl.add), "no rank may be in two groups"),
    (lambda: ncc.all_reduce([hbm(4)], [hbm(4)], 3, nl.add), "replica_group is 3, must be lists of ranks"),
    (lambda: ncc.all_reduce([hbm(4)], [nl.ndarray((4, 1), nl.float32)], ONE, nl.add), "in hbm and sbuf, must be"),
    (lambda: ncc.all_reduce([hbm(4)], [hbm(5)], ONE, nl.add), "5 elements of float32, must be the 4"),
    (lambda: ncc.all_reduce([hbm(4)], [hbm(4)], ONE, nl.add, priority=1), "priority is 1, needs gen4"),
    (lambda: ncc.all_gather([hbm(4)], [hbm(4)], ONE, 1), "collective_dim is 1, must be 0"),
    (lambda: ncc.all_to_all([nl.ndarray((4, 1), nl.float32)], [nl.ndarray((4, 1), nl.float32)], ONE, 0),
     "must be in HBM"),
    (lambda: ncc.collective_permute([hbm(4)] * 2, [hbm(4)] * 2, [(0, 0)]), "must be one each"),
    (lambda: ncc.collective_permute_implicit([[hbm(4)]], [[hbm(4)]], ONE, [1]), "channel_ids is"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), LIMITS, ids=[str(i) for i in range(len(LIMITS))])
def test_limits(call: Any, message: str) -> None:
    with pytest.raises(nki.NkiValidationError) as error:
        trace_body(call)
    assert message in str(error.value) and "test_collectives.py" in str(error.value)
