"""The Wan 2.1 diffusion transformer over the latent frames of several rows; parameters are named as published.

A row's tokens attend to themselves and to whatever its `past` hands out, layer by layer, so one body serves clips
(no past), chunks (committed entries) and rebuilding. It writes nothing: fresh keys and values come back to the caller.

Legend: B rows, C latent channels, F frames, H W latent rows and columns (in shapes of video), T tokens of a row,
S tokens of the past, N heads, D width of a head, L text tokens, M width of the model, P = 4C values of a patch.
Source: Wan 2.1 (2503.20314, section 4.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...kernels.chunk_attention import chunk_attention
from ..shared.compiled import Run, eager
from ..shared.video.rope import Rotation, rotate
from .spec import WanShape


@dataclass(frozen=True, slots=True)
class KV:
    """Keys and values [tokens, N, D] of one layer and one row."""

    k_TND: Tensor
    v_TND: Tensor


class Past(Protocol):
    """What rows see before their own tokens."""

    def attend(self, layer: int, q_BTND: Tensor, k_BTND: Tensor, v_BTND: Tensor) -> Tensor:
        """Self attention over the past and their own keys and values, all rotated [B, T, N, D]."""
        ...


class NoPast:
    """Rows that see only themselves."""

    def attend(self, layer: int, q_BTND: Tensor, k_BTND: Tensor, v_BTND: Tensor) -> Tensor:
        return chunk_attention(q_BTND, None, (k_BTND, v_BTND))


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass. `keys`: per layer and row, not yet rotated; [] unless asked for. `flow` is None where keys were all."""

    flow_BCFHW: Tensor | None
    fresh: list[list[KV]]


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        z: Tensor = y.to(x.dtype) * self.weight
        return z


class Attention(nn.Module):
    """Projections and their norms over all heads at once."""

    def __init__(self, shape: WanShape) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(shape.dim, shape.dim) for _ in range(4))
        self.norm_q, self.norm_k = RMSNorm(shape.dim), RMSNorm(shape.dim)
        self._heads = (shape.heads, shape.head_width)

    def queries(self, x: Tensor) -> Tensor:
        return self._split(self.norm_q(self.q(x)))

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self._split(self.norm_k(self.k(x))), self._split(self.v(x))

    def _split(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:-1], *self._heads)


class Block(nn.Module):
    def __init__(self, shape: WanShape) -> None:
        super().__init__()
        self.self_attn, self.cross_attn = Attention(shape), Attention(shape)
        self.norm3 = nn.LayerNorm(shape.dim, eps=1e-6)
        self.ffn = nn.Sequential(
            nn.Linear(shape.dim, shape.ffn), nn.GELU(approximate="tanh"), nn.Linear(shape.ffn, shape.dim)
        )
        self.modulation = nn.Parameter(torch.randn(1, 6, shape.dim) / shape.dim**0.5)

    def ahead(self, x_BTM: Tensor, shift_BFM: Tensor, scale_BFM: Tensor, frames: int) -> tuple[Tensor, ...]:
        """Queries, keys and values of the self attention."""
        y = _modulated(x_BTM, shift_BFM, scale_BFM, frames)
        return self.self_attn.queries(y), *self.self_attn.keys_and_values(y)

    def between(self, x_BTM: Tensor, seen_BTM: Tensor, gate_BFM: Tensor, frames: int) -> tuple[Tensor, ...]:
        """After the self attention: x, and queries of the cross attention."""
        x = _gated(x_BTM, self.self_attn.o(seen_BTM), gate_BFM, frames)
        return x, self.cross_attn.queries(self.norm3(x.to(self.norm3.weight.dtype)).to(x.dtype))

    def behind(
        self, x_BTM: Tensor, told_BTM: Tensor, shift_BFM: Tensor, scale_BFM: Tensor, gate_BFM: Tensor, frames: int
    ) -> tuple[Tensor, ...]:
        """After the cross attention: x of the next block."""
        x = x_BTM + self.cross_attn.o(told_BTM)
        return (_gated(x, self.ffn(_modulated(x, shift_BFM, scale_BFM, frames)), gate_BFM, frames),)


class Head(nn.Module):
    def __init__(self, shape: WanShape) -> None:
        super().__init__()
        self.head = nn.Linear(shape.dim, shape.channels * 4)
        self.modulation = nn.Parameter(torch.randn(1, 2, shape.dim) / shape.dim**0.5)


class WanTransformer(nn.Module):
    """See the module docstring."""

    def __init__(self, shape: WanShape) -> None:
        super().__init__()
        self.shape = shape
        self.patch_embedding = nn.Conv3d(shape.channels, shape.dim, (1, 2, 2), (1, 2, 2))
        self.text_embedding = nn.Sequential(
            nn.Linear(shape.text_dim, shape.dim), nn.GELU(approximate="tanh"), nn.Linear(shape.dim, shape.dim)
        )
        self.time_embedding = nn.Sequential(
            nn.Linear(shape.freq_dim, shape.dim), nn.SiLU(), nn.Linear(shape.dim, shape.dim)
        )
        self.time_projection = nn.Sequential(nn.SiLU(), nn.Linear(shape.dim, 6 * shape.dim))
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.head = Head(shape)

    @property
    def _layers(self) -> list["Block"]:
        return [block for block in self.blocks if isinstance(block, Block)]

    def in_precision(self, dtype: torch.dtype) -> "WanTransformer":
        """Weights in `dtype`, but time embedding, modulation and layer norms in float32, as the original runs them."""
        self.to(dtype)
        self.time_embedding.float()
        self.time_projection.float()
        self.head.modulation.data = self.head.modulation.data.float()
        for block in self._layers:
            block.modulation.data = block.modulation.data.float()
            block.norm3.float()
        return self

    def text_kv(self, text_LC: Tensor) -> tuple[KV, ...]:
        """Keys and values of one prompt for every layer; what a cross attention needs of it."""
        text = self.text_embedding(text_LC.to(self.patch_embedding.weight.dtype))
        return tuple(KV(*block.cross_attn.keys_and_values(text)) for block in self._layers)

    def forward(
        self,
        x_BCFHW: Tensor,
        timestep_BF: Tensor,
        text_B: Sequence[Sequence[KV]],
        rotation_B: Sequence[Rotation],
        past: Past,
        keep: bool = False,
        run: Run = eager,
    ) -> Pass:
        """One pass; timesteps in 0..1000 per frame. `keep`: only fresh keys and values are wanted, of every layer.
        `run`: how the blocks' parts are run.
        """
        frames = x_BCFHW.shape[2]
        x = self.patch_embedding(x_BCFHW.to(self.patch_embedding.weight.dtype)).flatten(2).transpose(1, 2)
        waves = sinusoid(timestep_BF, self.shape.freq_dim)
        e_BFM = self.time_embedding(waves)
        e_BF6M = self.time_projection(e_BFM).reshape(*timestep_BF.shape, 6, -1)
        fresh: list[list[KV]] = []
        for layer, block in enumerate(self._layers):
            e = [m.squeeze(2) for m in (block.modulation + e_BF6M).chunk(6, dim=2)]
            q, k, v = run("block.ahead", Block.ahead, block, x, e[0], e[1], frames)
            if keep:
                fresh.append([KV(k[row], v[row]) for row in range(len(k))])
                if layer == len(self._layers) - 1:
                    return Pass(None, fresh)
            q, k = (torch.stack([rotate(*row) for row in zip(each, rotation_B, strict=True)]) for each in (q, k))
            seen = past.attend(layer, q, k, v).flatten(2)
            x, q = run("block.between", Block.between, block, x, seen, e[2], frames)
            told = [_attend(q[i], kv[layer].k_TND, kv[layer].v_TND) for i, kv in enumerate(text_B)]
            (x,) = run("block.behind", Block.behind, block, x, torch.stack(told), e[3], e[4], e[5], frames)
        shift, scale = (m.squeeze(2) for m in (self.head.modulation + e_BFM[:, :, None]).chunk(2, dim=2))
        y = self.head.head(_modulated(x, shift, scale, frames))
        return Pass(self._unpatched(y, frames), fresh)

    def _unpatched(self, y_BTP: Tensor, frames: int) -> Tensor:
        """Values of patches [2, 2, C] back to a video [B, C, F, H, W] in float32."""
        s = self.shape
        y = y_BTP.float().view(-1, frames, s.rows // 2, s.columns // 2, 2, 2, s.channels)
        return y.permute(0, 6, 1, 2, 4, 3, 5).reshape(-1, s.channels, frames, s.rows, s.columns)


def sinusoid(timestep: Tensor, width: int) -> Tensor:
    """[..., width]: cosines, then sines, of the timestep at `width / 2` falling frequencies."""
    half = width // 2
    waves = 10000.0 ** (-torch.arange(half, dtype=torch.float64, device=timestep.device) / half)
    phase = timestep.double()[..., None] * waves
    return torch.cat((phase.cos(), phase.sin()), -1).float()


def _modulated(x_BTM: Tensor, shift_BFM: Tensor, scale_BFM: Tensor, frames: int) -> Tensor:
    """Layer norm, then per frame x (1 + scale) + shift, in float32."""
    y = _per_frame(F.layer_norm(x_BTM.float(), x_BTM.shape[-1:], eps=1e-6), frames)
    return (y * (1 + scale_BFM[:, :, None]) + shift_BFM[:, :, None]).flatten(1, 2).to(x_BTM.dtype)


def _per_frame(x_BTM: Tensor, frames: int) -> Tensor:
    return x_BTM.reshape(x_BTM.shape[0], frames, -1, x_BTM.shape[-1])


def _gated(x_BTM: Tensor, y_BTM: Tensor, gate_BFM: Tensor, frames: int) -> Tensor:
    y = (_per_frame(y_BTM.float(), frames) * gate_BFM[:, :, None]).flatten(1, 2)
    return (x_BTM.float() + y).to(x_BTM.dtype)


def _attend(q_TND: Tensor, k_SND: Tensor, v_SND: Tensor) -> Tensor:
    """One row over the tokens of its prompt [T, M]."""
    return chunk_attention(q_TND[None], None, (k_SND[None], v_SND[None]))[0].flatten(1)
