"""A PyTorch module through torchax: forward and gradient, compared with PyTorch itself and with JAX's own device."""

import jax
import numpy as np
import torch
from compared import compare, distance

# torchax lists overloads for named tensors, which torch 2.13 no longer has; nothing here uses them.
_packet = torch._ops.OpOverloadPacket
_getattr = _packet.__getattr__
_packet.__getattr__ = lambda self, name: object() if "name" in name.lower() else _getattr(self, name)
import torchax  # noqa: E402

from neurontools.jax import jit  # noqa: E402


class Block(torch.nn.Module):
    """Attention and a feed-forward part, each behind a norm and beside a residual."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        rows, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(rows, 3, self.heads, width // self.heads).permute(1, 2, 0, 3)
        weights = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, dim=-1)
        x = x + self.out((weights @ v).permute(1, 0, 2).reshape(rows, width))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


torch.manual_seed(0)
module = Block(32, 4).eval()
weights, function = torchax.extract_jax(module)
_packet.__getattr__ = _getattr
x = np.random.default_rng(1).standard_normal((24, 32)).astype(np.float32)


def forward(weights, x):
    return function(weights, (x,))


with torch.no_grad():
    expected = module(torch.from_numpy(x)).numpy()
far = distance(np.asarray(jit(forward)(weights, x)), expected)
print(f"block beside PyTorch: {far:.2e} apart")
if not far <= 2e-3:
    raise SystemExit("the block differs from PyTorch")
compare("block", forward, weights, x)
compare("block gradient", jax.grad(lambda weights, x: (forward(weights, x) ** 2).sum()), weights, x)
