"""Collectives: a group of one rank gives back its own data, limits are refused; several ranks: `test_ranks`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.collectives as ncc
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
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


LIMITS: list[tuple[Any, str]] = [
    (lambda: ncc.all_reduce([hbm(4)], [hbm(4)], ONE, nl.multiply), "op is nl.multiply, must be nl.add"),
    (lambda: ncc.all_reduce([hbm(4)], [hbm(4)], [[0], [0]], nl.add), "no rank may be in two groups"),
    (lambda: ncc.all_reduce([hbm(4)], [hbm(4)], 3, nl.add), "replica_group is 3, must be lists of ranks"),
    (lambda: ncc.all_reduce([hbm(4)], [nl.ndarray((4, 1), nl.float32)], ONE, nl.add), "in hbm and sbuf, must be"),
    (lambda: ncc.all_reduce([hbm(4)], [hbm(5)], ONE, nl.add), "must have as many elements as srcs with 4"),
    (lambda: ncc.all_reduce([hbm(4)], [hbm(4)], ONE, nl.add, priority=1), "priority is 1, needs gen4"),
    (lambda: ncc.all_gather([hbm(4)], [hbm(4)], ONE, 1), "collective_dim is 1, must be 0"),
    (lambda: ncc.all_to_all([nl.ndarray((4, 1), nl.float32)], [nl.ndarray((4, 1), nl.float32)], ONE, 0),
     "must be in HBM"),
    (lambda: ncc.collective_permute([hbm(4)] * 2, [hbm(4)] * 2, [(0, 0)]), "must be one each"),
    (lambda: ncc.collective_permute_implicit([[hbm(4)]], [[hbm(4)]], ONE, [1]), "channel_ids is"),
    (lambda: ncc.all_gather([hbm(4)], [hbm(4)], WIDE, 0), "must have 2 for 1 elements as srcs with 4"),
    (lambda: ncc.reduce_scatter([hbm(4)], [hbm(4)], WIDE, 0, nl.add), "must have 1 for 2 elements"),
    (lambda: ncc.all_to_all([hbm(3)], [hbm(3)], WIDE, 0), "dimension 0 must be a multiple of 2 ranks"),
    (lambda: ncc.all_reduce([hbm(4)], [hbm(4)], [[0, 1], [2]], nl.add), "must have the same number of ranks"),
    (lambda: ncc.all_reduce([hbm(4)], [hbm(4)], [[0, -1]], nl.add), "ranks must be 0 to"),
    (lambda: ncc.all_reduce([hbm(4)], [hbm(4, dtype=nl.int32)], WIDE, nl.add), "must be of float32"),
    (lambda: ncc.collective_permute([hbm(4)], [hbm(4)], [(0, 1), (0, 2)]), "no rank may be a source twice"),
    (lambda: ncc.collective_permute([hbm(4)], [hbm(4)], [(0, 1, 2)]), "must be pairs of ranks"),
    (lambda: ncc.all_gather([nl.ndarray((4, 2), nl.float32)], [nl.ndarray((8, 2), nl.float32)], WIDE, 1),
     "the gathered one is that of all ranks"),
    (lambda: ncc.all_gather_v([hbm(4)], [hbm(8)], WIDE, hbm(3, 2, dtype=nl.uint32)), "must have 4 each"),
    (lambda: ncc.all_gather_v([hbm(4)], [hbm(8)], [[0, 1, 2, 3]], hbm(4, 4, dtype=nl.uint32), has_rdispls=True),
     "has_rdispls is True, is not supported"),
    (lambda: ncc.all_to_all_v([hbm(4)], [hbm(4)], ONE, hbm(3, 1, dtype=nl.uint32)), "must have two or more each"),
    (lambda: ncc.all_to_all_v([hbm(4)], [hbm(4)], WIDE, hbm(4, 2, dtype=nl.uint32)), "must be uint32 of shape (3, 2)"),
    (lambda: ncc.all_to_all_v([hbm(4)], [hbm(5)], WIDE, hbm(3, 2, dtype=nl.uint32)), "must be a multiple of 2 ranks"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), LIMITS, ids=[str(i) for i in range(len(LIMITS))])
def test_limits(call: Any, message: str) -> None:
    with pytest.raises(nki.NkiValidationError) as error:
        trace_body(call)
    assert message in str(error.value) and "test_collectives.py" in str(error.value)


def test_a_long_group_is_told_by_its_ends() -> None:
    with pytest.raises(nki.NkiValidationError, match=r"replica_group is \[\[0, 1, .* \.\.\. .*99998\]\]") as error:
        trace_body(lambda: ncc.all_reduce([hbm(4)], [hbm(4)], [list(range(99_999))], nl.add))
    assert len(str(error.value)) < 500
