"""The causal latent transformer of `dream`, as pure functions of tensors.

A frame is 40 picture tokens and REGISTERS register tokens, which have neither input nor target of their own. What no
picture shows goes on in recurrent tokens (recurrent.py): `onward` moves them on before a frame is begun, and each token
of the frame is told of them.
`denoise` predicts the clean picture from a noisy one, from two frames before it and, through K and V kept per token
position, from all frames of the window. `commit` makes K and V of a clean frame from it, two before it and what
conditioned it alone, so one frame costs the cache one block, and nothing kept reaches back farther than the window.

What is uncertain comes out of the noise: that of the picture, which at sigma 1 is all of x, and NOISE numbers more,
which move the recurrent tokens and condition a frame at all its steps and for as long as it is remembered.

Legend: B rows, F frames, T targets, N tokens of a frame (P of them picture), C channels of a token, W width, H heads,
D width of a head, S kept frames, L temporal blocks (in CondB: look), K controls, Z noise,
R numbers of the recurrent tokens, 6 = AdaLN's modulations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..shared.road.blocks import CommittedKV, KVView, Spatial, Temporal, TiledLinear, modulated
from .card import PICTURE_TOKENS, REGISTERS
from .recurrent import Reader, Recurrent, Spread
from .shape import DreamShape

PICTURE = PICTURE_TOKENS
CONTEXT_SIGMA = 0.08  # the noise level committed frames are labelled with
CLAMP = 5.0  # |latent| of a predicted frame never exceeds this
_WAVES = torch.exp(torch.linspace(0, math.log(200.0), 32))  # frequencies of the noise level's embedding
_CONTEXT, _TARGET = 0, 1  # stream labels


@dataclass(frozen=True, slots=True)
class CondB:
    """What conditions one frame of each row."""

    controls_BK: Tensor
    look_BL: Tensor
    noise_BZ: Tensor
    state_BR: Tensor


@dataclass(frozen=True, slots=True)
class CondBF:
    """Conditions and noise level of several frames of each row; used inside and in training."""

    controls_BFK: Tensor
    look_BFL: Tensor
    noise_BFZ: Tensor
    state_BFR: Tensor
    sigma_BF: Tensor

    def to(self, kind: torch.dtype) -> CondBF:
        return self._each(lambda t: t.to(kind))

    def row(self, row: int) -> CondBF:
        """One row alone."""
        return self._each(lambda t: t[row : row + 1])

    def part(self, frames: slice, sigma_BF: Tensor) -> CondBF:
        """These frames, at other levels."""
        return replace(self._each(lambda t: t[:, frames]), sigma_BF=sigma_BF)

    def _each(self, made_of: Callable[[Tensor], Tensor]) -> CondBF:
        return CondBF(
            made_of(self.controls_BFK),
            made_of(self.look_BFL),
            made_of(self.noise_BFZ),
            made_of(self.state_BFR),
            made_of(self.sigma_BF),
        )

    def at(self, frame: int) -> CondB:
        return CondB(
            self.controls_BFK[:, frame], self.look_BFL[:, frame], self.noise_BFZ[:, frame], self.state_BFR[:, frame]
        )


class DreamTransformer(nn.Module):
    """Predicts clean frames; see the module's docstring. Rows never see each other."""

    def __init__(self, shape: DreamShape) -> None:
        super().__init__()
        w, c = shape.width, shape.channels
        self.shape = shape
        self.inward, self.context_inward = TiledLinear(4 * c, w, PICTURE), TiledLinear(3 * c, w, PICTURE)
        self.place = nn.Parameter(torch.randn(shape.tokens, w) * 0.02)
        self.recurrent, self.reader, self.spread = Recurrent(shape), Reader(shape, PICTURE), Spread(shape)
        self.context_state = TiledLinear(shape.state, REGISTERS * w, 1)
        self.context = Spatial(shape)
        self.blocks = nn.ModuleList(Temporal(shape) if kind == "T" else Spatial(shape) for kind in shape.layout)
        self.from_sigma = nn.Sequential(TiledLinear(64, w, 1), nn.SiLU(), TiledLinear(w, w, 1))
        self.from_controls, self.from_look = TiledLinear(shape.controls, w, 1), TiledLinear(shape.look, w, 1)
        self.from_noise = TiledLinear(shape.noise, w, 1, bias=False)
        self.stream = nn.Parameter(torch.zeros(2, w))
        self.mix = TiledLinear(w, w, 1)
        self.modulation, self.final_modulation = TiledLinear(w, 6 * w, 1), TiledLinear(w, 2 * w, 1)
        self.outward, self.skip = TiledLinear(w, c, PICTURE), TiledLinear(3 * c, c, PICTURE)
        for layer in (self.modulation, self.final_modulation, self.outward, self.skip):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        for block in self.blocks:
            if isinstance(block, Temporal):
                nn.init.zeros_(block.age_bias)

    # ---- served ----

    def onward(self, state_BR: Tensor, controls_BK: Tensor, noise_BZ: Tensor) -> Tensor:
        """The recurrent tokens of the next frame."""
        moved: Tensor = self.recurrent(state_BR, controls_BK, noise_BZ)
        return moved

    def read(self, history_B3PC: Tensor, look_BL: Tensor) -> Tensor:
        """The recurrent tokens of a world that starts from these pictures, newest first."""
        found: Tensor = self.reader(history_B3PC, look_BL)
        return found

    def denoise(self, x_BPC: Tensor, history_B2PC: Tensor, sigma_B: Tensor, cond: CondB, kv: KVView) -> Tensor:
        """The clean picture [B, P, C] seen in noisy `x`; history = [previous frame, the one before]."""
        predicted = self._predict(x_BPC[:, None], history_B2PC[:, None], _single(cond, sigma_B), *_past(kv))
        return predicted[:, 0].clamp(-CLAMP, CLAMP)

    def commit(self, history_B3PC: Tensor, cond: CondB) -> CommittedKV:
        """K and V of the newest clean frame; history = [it, the one before, the one before that]."""
        sigma_B = history_B3PC.new_full((history_B3PC.shape[0],), CONTEXT_SIGMA)
        remembered = self._remember(history_B3PC[:, None], _single(cond, sigma_B))
        k, v = (torch.stack(list(layers), 1)[..., 0, :] for layers in zip(*remembered, strict=True))
        return CommittedKV(k, v)

    def remembered(self, pictures_BFPC: Tensor, cond: CondBF) -> tuple[Tensor, Tensor]:
        """`commit` of frames 2 .. F-1 at once: K and V [B, L, N, H, F-2, D]; levels are CONTEXT_SIGMA."""
        history = torch.stack([pictures_BFPC[:, 2:], pictures_BFPC[:, 1:-1], pictures_BFPC[:, :-2]], 2)
        level = torch.full(pictures_BFPC[:, 2:, 0, 0].shape, CONTEXT_SIGMA, dtype=pictures_BFPC.dtype)
        layers = self._remember(history, cond.part(slice(2, pictures_BFPC.shape[1]), level))
        k, v = (torch.stack(list(both), 1) for both in zip(*layers, strict=True))
        return k, v

    # ---- trained ----

    def two_stream(
        self, context_BFPC: Tensor, noisy_BTPC: Tensor, context_sigma_BF: Tensor, cond: CondBF, reach_B: Tensor
    ) -> Tensor:
        """Clean predictions [B, T, P, C] for the last T of F frames, each from contexts before it alone.

            contexts c2 .. c(F-2), lightly noised, give K and V; target x_i sees those of c_j, j < i, and itself
        `cond.sigma_BF` holds the targets' levels (those of other frames are not read).
        A row sees at most `reach_B` frames back through K and V.
        """
        frames, targets = context_BFPC.shape[1], noisy_BTPC.shape[1]
        history = torch.stack([context_BFPC[:, 2:-1], context_BFPC[:, 1:-2], context_BFPC[:, :-3]], 2)
        remembered = self._remember(history, cond.part(slice(2, -1), context_sigma_BF[:, 2:-1]))
        first = frames - targets
        before = torch.stack([context_BFPC[:, first - 1 : -1], context_BFPC[:, first - 2 : -2]], 2)
        ages = torch.arange(first, frames)[:, None] - torch.arange(2, frames - 1)[None, :]
        ages_BFS = torch.where(ages[None] <= reach_B[:, None, None], ages[None], 0)
        part = cond.part(slice(first, None), cond.sigma_BF[:, first:])
        return self._predict(noisy_BTPC, before, part, remembered, ages_BFS)

    def paint(self, noise_BPC: Tensor, cond: CondB) -> Tensor:
        """The picture [B, P, C] as recurrent tokens and look alone show it: pure noise, no frame before it."""
        rows, s = len(noise_BPC), self.shape
        nothing = noise_BPC.new_zeros(rows, s.tokens, s.heads, 0, s.head_width)
        ages = torch.zeros(1, 1, 0, dtype=torch.int64, device=noise_BPC.device)
        before = torch.zeros_like(noise_BPC)[:, None, None].expand(-1, 1, 2, -1, -1)
        whole = _single(cond, noise_BPC.new_ones(rows))
        return self._predict(noise_BPC[:, None], before, whole, [(nothing, nothing)] * s.temporal, ages)[:, 0]

    # ---- shared ----

    def _remember(self, history_BF3PC: Tensor, cond: CondBF) -> list[tuple[Tensor, Tensor]]:
        """K and V [B, N, H, F, D] of clean frames for each temporal block."""
        picture = self.context_inward(torch.cat(history_BF3PC.unbind(2), -1))
        registers = self.context_state(cond.state_BFR).unflatten(-1, (REGISTERS, -1))
        h = torch.cat([picture, registers], 2) + self.place
        h = self.context(h, self._modulate(self._condition(cond, _CONTEXT)))
        return [b.remember(h) for b in self.blocks if isinstance(b, Temporal)]

    def _predict(
        self,
        x_BFPC: Tensor,
        before_BF2PC: Tensor,
        cond: CondBF,
        remembered: Sequence[tuple[Tensor, Tensor]],
        ages_BFS: Tensor,
    ) -> Tensor:
        """Clean pictures [B, F, P, C]."""
        level = cond.sigma_BF[..., None, None]
        clear = torch.cat([x_BFPC * (1 - level), *before_BF2PC.unbind(2)], -1)
        picture = self.inward(torch.cat([clear, x_BFPC * level], -1))
        h = F.pad(picture, (0, 0, 0, REGISTERS)) + self.place + self.spread(cond.state_BFR, cond.look_BFL)
        c_BFW = self._condition(cond, _TARGET)
        modulation, past = self._modulate(c_BFW), iter(remembered)
        for block in self.blocks:
            h = block(h, modulation, *next(past), ages_BFS) if isinstance(block, Temporal) else block(h, modulation)
        shift, scale = self.final_modulation(c_BFW).unflatten(-1, (2, -1))[:, :, None].unbind(3)
        made: Tensor = self.outward(modulated(h, shift, scale)[:, :, :PICTURE]) + self.skip(clear)
        return made

    def _modulate(self, c_BFW: Tensor) -> Tensor:
        m: Tensor = self.modulation(c_BFW).unflatten(-1, (6, -1))[:, :, None]
        return m

    def _condition(self, cond: CondBF, stream: int) -> Tensor:
        phase = cond.sigma_BF[..., None].float() * _WAVES.to(cond.sigma_BF.device)
        level = self.from_sigma(torch.cat([phase.sin(), phase.cos()], -1).to(cond.sigma_BF.dtype))
        c = level + self.from_controls(cond.controls_BFK) + self.from_look(cond.look_BFL)
        c = c + self.from_noise(cond.noise_BFZ) + self.stream[stream]
        mixed: Tensor = F.silu(self.mix(F.silu(c)))
        return mixed


def _single(cond: CondB, sigma_B: Tensor) -> CondBF:
    return CondBF(
        cond.controls_BK[:, None],
        cond.look_BL[:, None],
        cond.noise_BZ[:, None],
        cond.state_BR[:, None],
        sigma_B[:, None],
    )


def _past(kv: KVView) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    layers = zip(kv.k_BLNHSD.unbind(1), kv.v_BLNHSD.unbind(1), strict=True)
    return list(layers), kv.ages_BS[:, None]
