"""The parts of the Wan transformer: patches, attention's projections, a block, the head; named as published.

A block is three parts with attention between them, so that each may run compiled and attention reads what it likes:

    ahead       norm, modulation                           -> queries, keys, values (norms and positions come after)
    between     gate, norm                                 -> queries of the cross attention
    behind      residual, norm, modulation, feed forward   -> x of the next block

Legend: B rows, C latent channels, F frames, H W latent rows and columns, T tokens of a row, N heads, D width of a head,
L text tokens, M width of the model, P = 4C values of a patch.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...kernels.invariant_matmul import invariant_linear
from ...kernels.norm_modulate import Norm, gate_norm_modulate, gate_residual, norm_modulate
from ...kernels.qk_norm_rope import Norms
from .spec import WanShape


class Patches(nn.Conv3d):
    """Tokens of 2 x 2 latents [B, T, M]. Published as a convolution, but its windows never overlap: it is a product."""

    def __init__(self, shape: WanShape) -> None:
        super().__init__(shape.channels, shape.dim, (1, 2, 2), (1, 2, 2))

    def forward(self, x_BCFHW: Tensor) -> Tensor:
        rows, channels, frames, height, width = x_BCFHW.shape
        x = x_BCFHW.reshape(rows, channels, frames, height // 2, 2, width // 2, 2)
        return self.product(x.permute(0, 2, 3, 5, 1, 4, 6).reshape(rows, -1, channels * 4))

    def product(self, x_BTP: Tensor) -> Tensor:
        return F.linear(x_BTP, self.weight.flatten(1), self.bias)


class InvariantPatches(Patches):
    """The same weights, rows that do not feel each other."""

    def product(self, x_BTP: Tensor) -> Tensor:
        return invariant_linear(x_BTP, self.weight.flatten(1), self.bias, tile=x_BTP.shape[1])


class RMSNorm(nn.Module):
    """Over all heads at once."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x_BTM: Tensor) -> Tensor:
        weight_BFM = self.weight.expand(x_BTM.shape[0], 1, -1)
        return norm_modulate(x_BTM, weight_BFM, None, norm=Norm.RMS, learned=True)


class Attention(nn.Module):
    """Projections and their norms."""

    def __init__(self, shape: WanShape) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(shape.dim, shape.dim) for _ in range(4))
        self.norm_q, self.norm_k = RMSNorm(shape.dim), RMSNorm(shape.dim)
        self._heads = (shape.heads, shape.head_width)

    @property
    def norms(self) -> Norms:
        return Norms(self.norm_q.weight.view(self._heads), self.norm_k.weight.view(self._heads))

    def projected(self, x_BTM: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [B, T, N, D] without norms."""
        return self._split(self.q(x_BTM)), self._split(self.k(x_BTM)), self._split(self.v(x_BTM))

    def queries(self, x_BTM: Tensor) -> Tensor:
        return self._split(self.norm_q(self.q(x_BTM)))

    def keys_and_values(self, x_BLM: Tensor) -> tuple[Tensor, Tensor]:
        return self._split(self.norm_k(self.k(x_BLM))), self._split(self.v(x_BLM))

    def _split(self, x_BTM: Tensor) -> Tensor:
        return x_BTM.reshape(*x_BTM.shape[:-1], *self._heads)


class Block(nn.Module):
    """See the module docstring. Shifts, scales and gates are float32 [B, F, M]."""

    def __init__(self, shape: WanShape) -> None:
        super().__init__()
        self.self_attn, self.cross_attn = Attention(shape), Attention(shape)
        self.norm3 = nn.LayerNorm(shape.dim, eps=1e-6)
        self.ffn = nn.Sequential(
            nn.Linear(shape.dim, shape.ffn), nn.GELU(approximate="tanh"), nn.Linear(shape.ffn, shape.dim)
        )
        self.modulation = nn.Parameter(torch.randn(1, 6, shape.dim) / shape.dim**0.5)

    def ahead(self, x_BTM: Tensor, shift_BFM: Tensor, scale_BFM: Tensor) -> tuple[Tensor, ...]:
        return self.self_attn.projected(norm_modulate(x_BTM, scale_BFM, shift_BFM))

    def between(self, x_BTM: Tensor, seen_BTM: Tensor, gate_BFM: Tensor) -> tuple[Tensor, ...]:
        """x, and queries of the cross attention."""
        weight, bias = self.norm3.weight.expand_as(gate_BFM), self.norm3.bias.expand_as(gate_BFM)
        x, y = gate_norm_modulate(x_BTM, self.self_attn.o(seen_BTM), gate_BFM, weight, bias, learned=True)
        return x, self.cross_attn.queries(y)

    def behind(
        self, x_BTM: Tensor, told_BTM: Tensor, shift_BFM: Tensor, scale_BFM: Tensor, gate_BFM: Tensor
    ) -> tuple[Tensor, ...]:
        x, y = gate_norm_modulate(x_BTM, self.cross_attn.o(told_BTM), None, scale_BFM, shift_BFM)
        return (gate_residual(x, self.ffn(y), gate_BFM),)


class Head(nn.Module):
    """Patches [B, T, P] of the velocity."""

    def __init__(self, shape: WanShape) -> None:
        super().__init__()
        self.head = nn.Linear(shape.dim, shape.channels * 4)
        self.modulation = nn.Parameter(torch.randn(1, 2, shape.dim) / shape.dim**0.5)

    def forward(self, x_BTM: Tensor, e_BFM: Tensor) -> Tensor:
        shift, scale = (m.squeeze(2) for m in (self.modulation + e_BFM[:, :, None]).chunk(2, dim=2))
        patches: Tensor = self.head(norm_modulate(x_BTM, scale, shift))
        return patches
