"""A training step of the transformer block on four ranks, shared out in four ways, beside that of one rank.

    python parallel.py                              compile, run on four ranks, compare
    python parallel.py FOLDER [FEED [TARGET [WIDTH [BATCH]]]]
                                                    the same, with a feed-forward layer of FEED columns, for another
                                                    chip, a wider model, another batch; keep programs and inputs, for
                                                    `neurontools run --ranks 4`

JAX partitions each step for four devices, which are made of this machine; XLA writes down the program of a device when
its partitioner is through, and that is what `neurontools.compile` gets.
"""

import os
import sys
import tempfile
from pathlib import Path

RANKS = 4
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={RANKS}"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import transformer  # noqa: E402
from compared import distance, weights  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec  # noqa: E402
from transformer import LENGTH, WIDTH, attention, block, norm  # noqa: E402

import neurontools  # noqa: E402
from neurontools.jax import jit  # noqa: E402

MESH = jax.make_mesh((RANKS,), ("ranks",), axis_types=(AxisType.Auto,))
EVERYWHERE, ROWS, COLUMNS = PartitionSpec(), PartitionSpec("ranks"), PartitionSpec(None, "ranks")
SEQUENCE = COLUMNS  # of an array of batch, sequence, width
# The heads of attention and the columns of the feed-forward layer are shared out; norms are on every rank.
SPLIT = {"q": COLUMNS, "k": COLUMNS, "v": COLUMNS, "o": ROWS, "up": COLUMNS, "down": ROWS,
         "norm1": EVERYWHERE, "norm2": EVERYWHERE}  # fmt: skip


def step(w, x, y):
    """Return the loss and the weights after a step of gradient descent."""
    value, slope = jax.value_and_grad(lambda w: jnp.mean((block(w, x) - y) ** 2))(w)
    return value, jax.tree.map(lambda a, g: a - 0.1 * g, w, slope)


def scattered_block(w, x):
    """Return a rank's part of the sequence; what it needs of the others is gathered, what it has for them scattered."""

    def whole(x):
        return jax.lax.all_gather(x, "ranks", axis=1, tiled=True)

    def parts(x):
        return jax.lax.psum_scatter(x, "ranks", scatter_dimension=1, tiled=True)

    x = x + parts(attention(w, whole(norm(x, w["norm1"]))))
    return x + parts(jax.nn.gelu(whole(norm(x, w["norm2"])) @ w["up"]) @ w["down"])


def scattered_step(w, x, y):
    """Take the step with a part of the weights and of the sequence; JAX adds up what the way back needs."""

    def loss(w):
        return jax.lax.pmean(jnp.mean((scattered_block(w, x) - y) ** 2), "ranks")

    value, slope = jax.value_and_grad(loss)(w)
    return value, jax.tree.map(lambda a, g: a - 0.1 * g, w, slope)


def by_hand(w, x, y):
    """Give `scattered_step` to JAX as what each rank does."""
    places = SPLIT, SEQUENCE, SEQUENCE
    return jax.shard_map(scattered_step, mesh=MESH, in_specs=places, out_specs=(EVERYWHERE, SPLIT))(w, x, y)


def gathered_step(w, x, y):
    """Take the step with a part of the batch and of every weight; each is gathered where a layer needs it."""

    def loss(w):
        whole = {name: jax.lax.all_gather(part, "ranks", axis=0, tiled=True) for name, part in w.items()}
        return jax.lax.pmean(jnp.mean((block(whole, x) - y) ** 2), "ranks")

    value, slope = jax.value_and_grad(loss)(w)
    return value, jax.tree.map(lambda a, g: a - 0.1 * g, w, slope)


def fully_sharded(w, x, y):
    """Give `gathered_step` to JAX as what each rank does."""
    places = dict.fromkeys(SPLIT, ROWS), ROWS, ROWS
    return jax.shard_map(gathered_step, mesh=MESH, in_specs=places, out_specs=(EVERYWHERE, places[0]))(w, x, y)


CASES = {
    "data-parallel": (step, (dict.fromkeys(SPLIT, EVERYWHERE), ROWS, ROWS)),
    "tensor-parallel": (step, (SPLIT, EVERYWHERE, EVERYWHERE)),
    "sequence-parallel": (by_hand, (SPLIT, EVERYWHERE, EVERYWHERE)),
    "fully-sharded": (fully_sharded, (dict.fromkeys(SPLIT, ROWS), ROWS, ROWS)),
}


def partitioned(fn, placed, args):
    """Return the HLO of a rank, and how arguments and results are shared out."""
    given = jax.tree.map(lambda one, spec: NamedSharding(MESH, spec), args, placed)
    with tempfile.TemporaryDirectory() as folder:
        lowered = jax.jit(fn, in_shardings=given, keep_unused=True).lower(*args)
        compiled = lowered.compile({"xla_dump_to": folder, "xla_dump_hlo_as_proto": True,
                                    "xla_dump_hlo_pass_re": "spmd-partitioning"})  # fmt: skip
        (found,) = Path(folder).glob("*.after_spmd-partitioning.*.pb")
        return found.read_bytes(), jax.tree.leaves(given), jax.tree.leaves(compiled.output_shardings)


def parts(array, sharding):
    """Return what each rank has of an array."""
    array = np.asarray(array)
    return [array[where] for where in sharding.devices_indices_map(array.shape).values()]


def joined(found, like, sharding):
    """Return an array of what ranks have of it; where several have the same part, they must have the same bits."""
    whole, known = np.empty_like(like), np.zeros(like.shape, bool)
    for one, where in zip(found, sharding.devices_indices_map(like.shape).values(), strict=True):
        one = one.reshape(whole[where].shape)
        if known[where].any() and not np.array_equal(whole[where], one):
            raise SystemExit("ranks that should have the same have not")
        whole[where], known[where] = one, True
    return whole


def trained(neff, args, given, like, placed):
    """Run a program on as many ranks as things are shared out over; return whole results, and the run."""
    leaves = [parts(one, sharding) for one, sharding in zip(jax.tree.leaves(args), given, strict=True)]
    names = [one.name for one in neff.inputs]
    inputs = [dict(zip(names, each, strict=True)) for each in zip(*leaves, strict=True)]
    run = neurontools.run_ranks(neff, inputs)
    if not run.ok:
        raise SystemExit(f"no result: {run.hang or run.results[0].fault}")
    found = [[each.outputs[one.name] for each in run.results] for one in neff.outputs]
    return [joined(*each) for each in zip(found, like, placed, strict=True)], inputs, run


def arguments(feed, width, batch):
    """Return weights, a batch, and what is wanted of it."""
    square = (width, width)
    w = weights(0, q=square, k=square, v=square, o=square, norm1=(width,), norm2=(width,),
                up=(width, feed), down=(feed, width))  # fmt: skip
    return w, weights(1, x=(batch, LENGTH, width))["x"], weights(2, y=(batch, LENGTH, width))["y"]


def compare(name, args, alone, folder=None, target="trn2", tolerance=1e-4):
    """Compare a step on several ranks with that of one; end with an error where they differ."""
    fn, placed = CASES[name]
    hlo, given, shared = partitioned(fn, placed, args)
    neff = neurontools.compile(hlo, target=target, lnc=1, limits="ours")
    like = [np.asarray(one) for one in alone]
    got, inputs, run = trained(neff, args, given, like, shared)
    # Of the weights, what the step added counts: most of a weight is what it was.
    before = [0.0, *jax.tree.leaves(args[0])]
    worst = max(distance(a - old, b - old) for a, b, old in zip(got, like, before, strict=True))
    print(f"{name} step on {RANKS} ranks: {len(run.collectives)} collectives, largest difference {worst:.2e}, "
          f"{run.time_ps / 1e6:.1f} us emulated")  # fmt: skip
    if folder is not None:
        neff.save(folder / f"{name}.neff")
        for rank, each in enumerate(inputs):
            np.savez(folder / f"{name}-{rank}.npz", **each)
    if not worst <= tolerance:
        raise SystemExit(f"the {name} step differs")


if __name__ == "__main__":
    given = dict(zip(("folder", "feed", "target", "width", "batch"), sys.argv[1:], strict=False))
    target, folder = given.get("target", "trn2"), Path(given["folder"]) if "folder" in given else None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    width = int(given.get("width", WIDTH))
    transformer.HEAD = transformer.HEAD * width // WIDTH  # as many heads, one a rank
    args = arguments(int(given.get("feed", 4 * width)), width, int(given.get("batch", 8)))
    one = jit(step, target=target)
    alone = jax.tree.leaves(one(*args))
    worst = max(map(distance, alone, jax.tree.leaves(jax.jit(step)(*args))))
    print(f"step on one rank: loss {float(alone[0]):.6f}, {worst:.2e} from JAX's own, "
          f"{one.result.time_ps / 1e6:.1f} us emulated")  # fmt: skip
    for name in CASES:
        compare(name, args, alone, folder, target)
