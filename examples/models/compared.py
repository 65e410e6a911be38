"""Run a function on the emulator and on JAX's own device, and say how far the results lie apart."""

import jax
import numpy as np

from neurontools.jax import jit


def weights(seed, **shapes):
    """Return small random weights by name."""
    rng = np.random.default_rng(seed)
    return {name: (rng.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in shapes.items()}


def distance(a, b):
    """Return the largest difference, as a share of the largest element."""
    return float(np.max(np.abs(a - b), initial=0.0) / max(np.max(np.abs(b), initial=0.0), 1e-30))


def compare(name, fn, *args, tolerance=2e-3, **options):
    """Run `fn` both ways; end with an error where a result differs by more than the tolerance."""
    run = jit(fn, **options)
    got, want = jax.tree.leaves(run(*args)), jax.tree.leaves(jax.jit(fn)(*args))
    worst = max(distance(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in zip(got, want, strict=True))
    print(f"{name}: {len(got)} results, largest difference {worst:.2e}, {run.result.time_ps / 1e6:.1f} us emulated")
    if not worst <= tolerance:
        raise SystemExit(f"{name} differs")
