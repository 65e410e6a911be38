"""Random bits: the device's own generator, started from the state that the graph gives."""

from __future__ import annotations

from formats import isa as words
from formats.dtypes import Dtype
from formats.isa import AluOp
from neurontools.compiler.graph import Node
from neurontools.compiler.kernels import tile_elements
from neurontools.compiler.loading import part_of, store
from neurontools.compiler.lowering import Lowering, lowers
from neurontools.compiler.tile_math import constant_like
from neurontools.compiler.tiling import tiles

__all__: list[str] = []

_U32 = Dtype.UINT32


@lowers("rng-bit-generator")
def _rng_bit_generator(self: Lowering, node: Node) -> None:
    """Lower random bits by the default algorithm, which every device chooses itself: DVE's generator here.

    The state seeds the generator, and the next state is the one before plus one in each word.
    """
    e = self.emitter
    state = self.array(node.operands[0])
    following, out = self.result(node, 0), self.result(node, 1)
    line = self.dense(state)._replace(shape=(state.size,), strides=(1,))
    count = state.size
    held = e.tile(state.dtype, 1, (count,))
    e.copy(held, line._replace(shape=(1, count), strides=(count, 1)))
    seed, mixed = e.tile(_U32, 1), held._replace(dtype=_U32)
    e.cast(seed, mixed._replace(dims=((1, 1),)))
    # Every word of the state must tell: keys that JAX splits differ in any of them.
    for number in range(1, count):
        word = mixed._replace(offset=4 * number, dims=((1, 1),))
        # 2^32 over the golden ratio (Knuth's multiplicative hash): an odd factor loses nothing.
        factor, grown = constant_like(e, seed, _U32, 0x9E3779B1), e.tile(_U32, 1)
        e.tensor_tensor(grown, seed, factor, AluOp.MULTIPLY, "Pool")
        e.tensor_tensor(seed, grown, word, AluOp.BITWISE_XOR)
    e.compute(words.SetRngSeed, "DVE", {"src": seed}, {})
    flat = out._replace(shape=(out.size,), strides=(1,))
    for tile in tiles(flat.shape, tile_elements(2)):
        bits = e.tile(out.dtype, tile.partitions, tile.free or (1,))
        e.compute(words.Rng, "DVE", {"dst": bits}, {})
        store(e, part_of(flat, flat.strides, tile), bits)
    one, new = constant_like(e, mixed, _U32, 1), e.like(mixed, _U32)
    e.tensor_tensor(new, mixed, one, AluOp.ADD, "Pool")
    into = following._replace(shape=(1, count), strides=(count, 1))
    e.copy(into, new._replace(dtype=state.dtype))
