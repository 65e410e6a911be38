"""View algebra against NumPy: the same chain of views on a tensor and on an array selects the same elements."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.nki import NkiValidationError
from neurontools.nki.strides import infer_shape, reshape_strides
from tests.nki.support import elements, trace_body

BUFFERS = st.sampled_from([nl.sbuf, nl.shared_hbm])
SHAPES = st.lists(st.integers(1, 6), min_size=2, max_size=4).map(tuple)


def both(shape: tuple[int, ...], buffer: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    return nl.ndarray(shape, nl.float32, buffer), np.arange(prod(shape)).reshape(shape)


def same(tensor: Any, array: np.ndarray[Any, Any], storage: np.ndarray[Any, Any]) -> None:
    """Compare a view with the array NumPy made; on chip two dimensions stay at least, in HBM one."""
    assert tensor.size == array.size
    np.testing.assert_array_equal(elements(tensor, storage).reshape(array.shape), array)


@st.composite
def keys(draw: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    key: list[Any] = []
    for extent in shape:
        kind = draw(st.sampled_from(["all", "slice", "index", "step"]))
        start = draw(st.integers(0, extent - 1))
        stop = draw(st.integers(start + 1, extent + 2))
        step = draw(st.integers(1, 3)) if kind == "step" else None
        negative = draw(st.booleans())
        key.append(
            slice(None)
            if kind == "all"
            else (start - extent if negative else start)
            if kind == "index"
            else slice(start - extent if negative else start, stop, step)
        )
    length = draw(st.integers(1, len(key)))
    if length < len(key) and draw(st.booleans()):
        return (Ellipsis, *key[-length:])
    return tuple(key[:length])


@given(SHAPES, BUFFERS, st.data())
def test_indexing_selects_what_numpy_selects(shape: tuple[int, ...], buffer: Any, data: Any) -> None:
    def body() -> None:
        tensor, array = both(shape, buffer)
        key = data.draw(keys(shape))
        first = len(shape) - len(key) + 1 if key[0] is Ellipsis else 0
        named = zip(shape[first:], key[1:] if key[0] is Ellipsis else key, strict=False)
        if any(isinstance(one, slice) and one.stop is not None and one.stop > extent for extent, one in named):
            with pytest.raises(NkiValidationError, match="leaves dimension") as error:
                tensor[key]
            assert error.value.finding == "memcheck:oob" and error.value.place is not None
            return
        got = tensor[key]
        same(got, array[key], array)
        if buffer is nl.sbuf:
            assert got.ndim >= 2 and got.shape[0] == np.atleast_1d(array[_keep_first(key, shape)]).shape[0]

    trace_body(body)


def _keep_first(key: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Return the key of dimension 0 as a slice."""
    first = slice(None) if key[0] is Ellipsis and len(key) - 1 < len(shape) else key[0]
    return slice(first % shape[0], first % shape[0] + 1) if isinstance(first, int) else first


@given(SHAPES, BUFFERS, st.data())
def test_chains_of_views_match_numpy(shape: tuple[int, ...], buffer: Any, data: Any) -> None:
    def body() -> None:
        tensor, storage = both(shape, buffer)
        array = storage
        for _ in range(data.draw(st.integers(1, 5))):
            tensor, array = _step(tensor, array, data)
            assert tensor.shape == array.shape
            np.testing.assert_array_equal(elements(tensor, storage), array)

    trace_body(body)


def _step(tensor: Any, array: np.ndarray[Any, Any], data: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """Apply one random view method to both."""
    rank = tensor.ndim
    inner = st.integers(1, rank - 1) if rank > 1 else st.nothing()
    choices = ["expand"]
    if rank > 1:
        choices += ["permute", "slice", "split", "flatten", "reshape"]
    if any(extent == 1 for extent in tensor.shape[1:]):
        choices += ["broadcast", "squeeze"] if rank > 2 else ["broadcast"]
    choice = data.draw(st.sampled_from(choices))
    if choice == "expand":
        axis = data.draw(st.integers(1, rank))
        return tensor.expand_dim(axis), np.expand_dims(array, axis)
    if choice == "permute":
        order = (0, *data.draw(st.permutations(range(1, rank))))
        return tensor.permute(order), array.transpose(order)
    if choice in ("broadcast", "squeeze"):
        axis = data.draw(st.sampled_from([a for a in range(1, rank) if tensor.shape[a] == 1]))
        if choice == "squeeze":
            return tensor.squeeze_dim(axis), array.squeeze(axis)
        size = data.draw(st.integers(1, 3))
        wide = (*tensor.shape[:axis], size, *tensor.shape[axis + 1 :])
        return tensor.broadcast(axis, size), np.broadcast_to(array, wide)
    axis = data.draw(inner)
    extent = tensor.shape[axis]
    if choice == "slice":
        start = data.draw(st.integers(0, extent - 1))
        end = data.draw(st.integers(start + 1, extent))
        step = data.draw(st.integers(1, 3))
        key = (slice(None),) * axis + (slice(start, end, step),)
        return tensor.slice(axis, start, end, step), array[key]
    if choice == "split":
        factor = data.draw(st.sampled_from([d for d in range(1, extent + 1) if extent % d == 0]))
        split = (factor, extent // factor)
        hole = data.draw(st.sampled_from([split, (factor, -1), (-1, extent // factor)]))
        return tensor.reshape_dim(axis, hole), array.reshape((*array.shape[:axis], *split, *array.shape[axis + 1 :]))
    if choice == "flatten":
        try:
            return tensor.flatten_dims(axis, rank - 1), array.reshape((*array.shape[:axis], -1))
        except NkiValidationError:
            # NumPy must not be able to do it without a copy either.
            flat = (*array.shape[:axis], prod(array.shape[axis:]))
            assert reshape_strides(array.shape, _strides(array), flat) is None
            return tensor, array
    try:
        return tensor.reshape((array.shape[0], -1)), array.reshape((array.shape[0], -1))
    except NkiValidationError:
        assert not np.shares_memory(array, array.reshape((array.shape[0], -1)))
        return tensor, array


def _strides(array: np.ndarray[Any, Any]) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_reshape_without_a_copy_is_what_numpy_does(shape: list[int], data: Any) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    array = np.arange(prod(shape)).reshape(shape).transpose(order)
    factors = [f for extent in shape for f in ((2, 2) if extent == 4 else (extent,))]
    cut = data.draw(st.integers(0, len(factors)))
    new = (prod(factors[:cut]), prod(factors[cut:]))
    strides = reshape_strides(array.shape, _strides(array), new)
    copied = array.reshape(new)
    if strides is None:
        assert not np.shares_memory(array, copied)
    else:
        again = np.lib.stride_tricks.as_strided(array, new, tuple(s * array.itemsize for s in strides))
        np.testing.assert_array_equal(again, copied)


@pytest.mark.parametrize("reshape", [
    lambda tensor: tensor.reshape((4, 24 / 2, 2)), lambda tensor: tensor.reshape(4, 12.0, 2),
    lambda tensor: tensor.reshape_dim(1, (24 / 2, 2)),
])  # fmt: skip
def test_a_shape_of_quotients_is_refused(reshape: Any) -> None:
    """As floats they came as far as the words, whose addresses are integers."""

    def body() -> None:
        tensor, _ = both((4, 24), nl.sbuf)
        with pytest.raises(NkiValidationError, match=r"reshape\w*: shape \(.*12\.0, 2\) is not made of integers"):
            reshape(tensor)
        assert tensor.reshape((np.int64(4), 12, 2)).shape == (4, 12, 2)

    trace_body(body)


def test_infer_shape_fills_one_hole() -> None:
    assert infer_shape((4, -1), 24) == (4, 6)
    assert infer_shape((5, -1), 24) is None
    assert infer_shape((-1, -1), 24) is None
    assert infer_shape((24, 0), 24) is None


def test_ap_of_some_columns_steps_by_all_that_a_partition_of_them_has() -> None:
    def body() -> None:
        tensor, array = both((4, 24), nl.sbuf)
        for _ in range(2):  # the second time from what is known of the first
            column = tensor[:, 5:6].ap([[1, 4], [0, 3]], offset=0)
            np.testing.assert_array_equal(elements(column, array), np.repeat(array[:, 5:6], 3, 1))
            pairs = tensor[1:3, 8:12].ap([[4, 2], [2, 2], [1, 2]], dtype=tensor.dtype)
            np.testing.assert_array_equal(elements(pairs, array), array[1:3, 8:12].reshape(2, 2, 2))
            assert tensor[0:1, 8:12].ap([[4, 2], [1, 4]]).strides == (4, 1)  # of a partition that has no next one
            assert tensor[:, 8:12].ap([[12, 2], [1, 4]]).strides == (12, 1)

    trace_body(body)


def test_ap_and_rearrange_and_view() -> None:
    def body() -> None:
        tensor, array = both((4, 24), nl.sbuf)
        pool = tensor.ap([[24, 4], [8, 3], [2, 4], [1, 2]])
        np.testing.assert_array_equal(elements(pool, array), array.reshape(4, 3, 4, 2))
        shifted = tensor[:, 8:].ap([[24, 4], [1, 4]], offset=2)
        np.testing.assert_array_equal(elements(shifted, array), array[:, 10:14])
        swapped = tensor.rearrange(("b", ("h", "w")), ("b", "w", "h"), {"h": 4})
        np.testing.assert_array_equal(elements(swapped, array), array.reshape(4, 4, 6).transpose(0, 2, 1))
        merged = tensor.rearrange(("b", ("h", "w")), ("b", ("h", "w")), {"h": 4})
        assert merged.shape == (4, 24)

        raw = nl.ndarray((4, 24), nl.uint8, nl.sbuf)[:, 8:24].view(nl.float32)
        assert (raw.shape, raw.strides, raw.offset, raw.dtype) == ((4, 4), (6, 1), 2, nl.float32)
        wide = nl.ndarray((4, 6), nl.float32, nl.shared_hbm)[1:, :].reinterpret_cast(nl.bfloat16)
        assert (wide.shape, wide.strides, wide.offset) == ((3, 12), (12, 1), 12)
        assert tensor.view(nl.float32).shape == (4, 24)

    trace_body(body)


def test_facts_of_a_view() -> None:
    def body() -> None:
        tensor = nl.ndarray((8, 4, 6), nl.bfloat16, nl.sbuf, name="weights")
        assert (tensor.ndim, tensor.size, tensor.name, tensor.buffer) == (3, 192, "weights", nl.sbuf)
        assert tensor.is_contiguous() and not tensor[:, :, 1:].is_contiguous()
        assert tensor[2:].is_contiguous()  # partitions do not count
        assert tensor.get_pattern() == [[24, 8], [6, 4], [1, 6]]
        assert not tensor.is_indirect()
        view = tensor[3:5, 1, 2:6].view_of_storage
        assert (view.partition, view.partitions, view.offset, view.dims) == (3, 2, 16, ((1, 4),))
        column = nl.ndarray((8,), nl.float32, nl.sbuf)
        assert column.view_of_storage.dims == ((1, 1),)
        assert tensor[:, nl.ds(1, 2)].shape == (8, 2, 6) and tensor[nl.ds(8, 0)].shape == (0, 4, 6)
        assert tensor[2].shape == (1, 4, 6) and tensor[:, 1, 2].shape == (8, 1)
        assert nl.ndarray((4, 5), nl.float32, nl.hbm)[1, 2].shape == (1,)

    trace_body(body)


BAD = {
    "index": (lambda t: t[:, 24], "index 24 leaves dimension 1 of size 24"),
    "empty": (lambda t: t[:, 5:5], "slice 5:5 of dimension 1 of size 24 is empty"),
    "step": (lambda t: t[:, ::-1], "slice step -1"),
    "too many": (lambda t: t[0, 0, 0], "3 indices for shape (4, 24)"),
    "no elements": (lambda t: t[:, nl.ds(20, 0)], "a view of shape (4, 0) has no elements"),
    "ds": (lambda t: t[:, nl.ds(20, 8)], "nl.ds(20, 8) leaves dimension 1"),
    "float": (lambda t: t[:, 1.5], "index 1.5 of dimension 1 is no integer"),
    "permute": (lambda t: t.permute((1, 0)), "moves the partition dimension"),
    "not a permutation": (lambda t: t.permute((0, 0)), "is no permutation"),
    "broadcast": (lambda t: t.broadcast(1, 4), "broadcast dim 1 has size 24, not 1"),
    "partition": (lambda t: t.expand_dim(0), "dim 0 is the partition dimension"),
    "squeeze": (lambda t: t.squeeze_dim(1), "squeeze_dim dim 1 has size 24"),
    "split": (lambda t: t.reshape_dim(1, (5, -1)), "does not divide size 24"),
    "reshape": (lambda t: t.reshape((5, 5)), "does not fit 96 elements"),
    "partitions": (
        lambda t: nl.ndarray((4, 24), nl.float32, nl.psum, name="tile").reshape((2, 48)),
        "changes the 4 partitions",
    ),
    "copy": (lambda t: t[:, ::2].reshape((4, 2, 6)).permute((0, 2, 1)).reshape((4, 12)), "would need a copy"),
    "slice": (lambda t: t.slice(1, 4, 30), "slice 4:30:1 leaves dimension 1 of size 24"),
    "select": (lambda t: t.select(1, -1), "select index -1"),
    "ap reach": (lambda t: t.ap([[24, 4], [1, 25]]), "reaches elements 0 to 96 of 96"),
    "ap partition": (lambda t: t[0:2].ap([[24, 2], [1, 30]]), "leaves the partition of 24 elements"),
    "view": (lambda t: t[:, 0:3].view(nl.bfloat16)[:, 1:4].view(nl.float32), "view as float32"),
    "dtype": (lambda t: t.view("complex64"), "is not an NKI data type"),
    "rearrange": (lambda t: t.rearrange(("a", "b"), ("a", "c")), "do not name the same dimensions"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_views_name_the_tensor_and_the_line(case: str) -> None:
    act, message = BAD[case]

    def body() -> None:
        made = act(nl.ndarray((4, 24), nl.float32, nl.sbuf, name="tile"))
        _ = made.view_of_storage  # a pattern that leaves its tile may be made, not used

    with pytest.raises(NkiValidationError) as caught:
        trace_body(body)
    assert message in str(caught.value)
    if case != "dtype":
        assert "tile: " in str(caught.value) and "test_views.py:" in str(caught.value)


def test_partition_steps_have_no_view() -> None:
    def body() -> None:
        with pytest.raises(NkiValidationError, match="engines and DMA read contiguous partitions"):
            _ = nl.ndarray((8, 4), nl.float32, nl.sbuf)[::2].view_of_storage

    trace_body(body)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda t, i: t[i], r"tensor: index of dimension 0 is a tensor; select\(0, index\)"),
        (lambda t, i: t.indirect(i), "tensor: indirect needs gen4"),
    ],
)
def test_dynamic_addresses_are_refused_by_name(act: Any, message: str) -> None:
    def body() -> None:
        tensor = nl.ndarray((8, 4), nl.float32, nl.shared_hbm)
        index = nl.ndarray((8, 1), nl.int32, nl.sbuf)
        with pytest.raises(NkiValidationError, match=message):
            act(tensor, index)

    trace_body(body)


@pytest.mark.parametrize(("act", "message"), [
    (lambda t: t.ap([[4, 8], [1.5, 2.9]]), r"tensor: ap takes \[stride, count\] pairs and an offset, all integers"),
    (lambda t: t.ap([[4, 8], [1, 2]], offset=1.0), r"not \[\[4, 8\], \[1, 2\]\], 1.0"),
    (lambda t: t.ap([[4, 8, 1], [1, 2]]), "all integers"),
    (lambda t: t[:, 0:1].broadcast(1, -3), "broadcast size -3 of dim 1 is not at least 1"),
    (lambda t: t[:, 0:1].broadcast(1, 2.0), "index 2.0 of dimension 1 is no integer"),
    (lambda t: list(t), "does not take iteration or unpacking; write x.i. for each i of nl.affine_range"),
    (lambda t: 0 in t, "compares no elements of an NKI tensor|does not take in; write nl.equal"),
])  # fmt: skip
def test_what_is_no_view_is_refused_in_a_line(act: Any, message: str) -> None:
    def body() -> None:
        tensor = nl.ndarray((8, 4), nl.float32, name="tensor")
        with pytest.raises(NkiValidationError, match=message):
            act(tensor)

    trace_body(body)


def test_rows_by_index_take_rows_of_their_own_tensor() -> None:
    """An assignment of the same elements through a view of indices is no assignment to itself."""

    def kernel(x: Any) -> Any:
        behind = nl.ndarray((4, 1), nl.uint32)
        nisa.iota(behind, [[1, 1]], 4, 1)
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        nisa.dma_copy(out, x)
        rows = out.ap([[4, 4], [1, 4]])
        out.ap([[4, 4], [1, 4]], vector_offset=behind)[...] = rows
        return out

    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    np.testing.assert_array_equal(nki.jit(kernel)(x), np.concatenate([x[:4], x[:4]]))
