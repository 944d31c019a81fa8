"""The Wan 2.1 diffusion transformer over the latent frames of several rows; parameters are named as published.

A row's tokens attend to themselves and to whatever its `past` hands out, layer by layer, so one body serves clips
(no past), chunks (committed entries) and rebuilding. Fresh keys and values are written where `keep` says, or nowhere.

Legend: B rows, C latent channels, F frames, H W latent rows and columns (in shapes of video), T tokens of a row,
N heads, D width of a head, J = D / 2 pairs of it, L text tokens, M width of the model, P = 4C values of a patch.
Source: Wan 2.1 (2503.20314, section 4.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from ...kernels.chunk_attention import chunk_attention
from ...kernels.qk_norm_rope import qk_norm_rope
from ..shared.compiled import CompiledRun, eager
from ..shared.invariant import make_invariant
from .blocks import Block, Head, InvariantPatches, Patches
from .slab import Writes
from .spec import WanShape


@dataclass(frozen=True, slots=True)
class KV:
    """Keys and values [L, N, D] of one prompt for one layer."""

    k_LND: Tensor
    v_LND: Tensor


class Past(Protocol):
    """What rows see before their own tokens."""

    def attend(self, layer: int, q_BTND: Tensor, k_BTND: Tensor, v_BTND: Tensor) -> Tensor:
        """Self attention over the past and their own keys and values, all rotated [B, T, N, D]."""
        ...


class NoPast:
    """Rows that see only themselves."""

    def attend(self, layer: int, q_BTND: Tensor, k_BTND: Tensor, v_BTND: Tensor) -> Tensor:
        return chunk_attention(q_BTND, None, (k_BTND, v_BTND))


class WanTransformer(nn.Module):
    """See the module docstring."""

    def __init__(self, shape: WanShape) -> None:
        super().__init__()
        self.shape = shape
        self.patch_embedding = Patches(shape)
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
    def _layers(self) -> list[Block]:
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

    def invariant(self) -> "WanTransformer":
        """Rows of a pass have the bits they have alone. Load, merge and narrow first: it cannot be undone."""
        for part in (self.time_embedding, self.time_projection, self.blocks, self.head):
            make_invariant(part)
        with torch.device("meta"):
            patches = InvariantPatches(self.shape)
        patches.weight, patches.bias = self.patch_embedding.weight, self.patch_embedding.bias
        self.patch_embedding = patches
        return self

    def text_kv(self, text_LC: Tensor) -> tuple[KV, ...]:
        """Keys and values of one prompt for every layer; what a cross attention needs of it."""
        text = self.text_embedding(text_LC.to(self.patch_embedding.weight.dtype))[None]
        both = (block.cross_attn.keys_and_values(text) for block in self._layers)
        return tuple(KV(k[0], v[0]) for k, v in both)

    def forward(
        self,
        x_BCFHW: Tensor,
        timestep_BF: Tensor,
        text_B: Sequence[Sequence[KV]],
        turn_BTJ: tuple[Tensor, Tensor],
        past: Past,
        keep: Writes | None = None,
        run: CompiledRun = eager,
    ) -> Tensor | None:
        """Velocities [B, C, F, H, W] in float32; timesteps in 0..1000 per frame, `turn`: cos and sin of the positions.
        With `keep` keys and values of every layer are written there and there is no velocity. `run`: how the blocks'
        parts are run.
        """
        x = self.patch_embedding(x_BCFHW.to(self.patch_embedding.weight.dtype))
        waves = torch.stack([sinusoid(timestep_F, self.shape.freq_dim) for timestep_F in timestep_BF])
        e_BFM = self.time_embedding(waves)
        e_BF6M = self.time_projection(e_BFM).reshape(*timestep_BF.shape, 6, -1)
        for layer, block in enumerate(self._layers):
            e = [m.squeeze(2) for m in (block.modulation + e_BF6M).chunk(6, dim=2)]
            q, k, v = run("block.ahead", Block.ahead, block, x, e[0], e[1])
            staged = None if keep is None else keep.staged(layer)
            q, k = qk_norm_rope(q, k, v, turn_BTJ, block.self_attn.norms, staged)
            if keep is not None and layer == len(self.blocks) - 1:
                return None
            seen = past.attend(layer, q, k, v).flatten(2)
            x, q = run("block.between", Block.between, block, x, seen, e[2])
            told = [_attend(q[row], text[layer]) for row, text in enumerate(text_B)]
            (x,) = run("block.behind", Block.behind, block, x, torch.stack(told), e[3], e[4], e[5])
        return self._unpatched(self.head(x, e_BFM), x_BCFHW.shape[2])

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


def _attend(q_TND: Tensor, text: KV) -> Tensor:
    """One row over the tokens of its prompt [T, M]."""
    return chunk_attention(q_TND[None], None, (text.k_LND[None], text.v_LND[None]))[0].flatten(1)
