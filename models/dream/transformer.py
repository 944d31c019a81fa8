"""The causal latent transformer of `dream`, as pure functions of tensors.

A frame is 40 picture tokens and REGISTERS register tokens, which carry what no single place of a picture can (speed,
bends, what is due beside the road). Registers have neither input nor target of their own.
`denoise` predicts the clean picture from a noisy one, from two frames before it and, through K and V kept per token
position, from all frames of the window. `commit` makes K and V of a clean frame from it, two before it and what
conditioned it alone, so one frame costs the cache one block, and nothing kept reaches back farther than the window.

What is uncertain comes out of the noise: that of the picture, which at sigma 1 is all of x, and NOISE numbers more,
which condition a frame at all its steps and for as long as it is remembered.

Legend: B rows, F frames, T targets, N tokens of a frame (P of them picture), C channels of a token, W width, H heads,
D width of a head, S kept frames, L temporal blocks (in CondB: look), K controls, Z noise,
6 = AdaLN's modulations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..shared.road.blocks import Spatial, Temporal, TiledLinear, modulated
from .card import CHANNELS, HEADS, LAYOUT, NOISE, PICTURE_TOKENS, REGISTERS, TOKENS, WIDTH, WINDOW

PICTURE = PICTURE_TOKENS
CONTEXT_SIGMA = 0.05  # the noise level committed frames are labelled with
CLAMP = 5.0  # |latent| of a predicted frame never exceeds this
MOVED = 0.2  # variance of a latent that its previous frame does not explain
_WAVES = torch.exp(torch.linspace(0, math.log(200.0), 32))  # frequencies of the noise level's embedding
_CONTEXT, _TARGET = 0, 1  # stream labels


@dataclass(frozen=True, slots=True)
class DreamShape:
    """All sizes; two models with equal shapes can exchange weights."""

    width: int = WIDTH
    heads: int = HEADS
    layout: str = LAYOUT
    window: int = WINDOW
    tokens: int = TOKENS
    channels: int = CHANNELS
    controls: int = 4
    look: int = 12
    noise: int = NOISE

    @property
    def temporal(self) -> int:
        """Blocks that keep K and V."""
        return self.layout.count("T")

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def entries(self) -> int:
        """Ring entries: the window, and one that is free for staging."""
        return self.window + 1


@dataclass(frozen=True, slots=True)
class CondB:
    """What conditions one frame of each row."""

    controls_BK: Tensor
    look_BL: Tensor
    noise_BZ: Tensor


@dataclass(frozen=True, slots=True)
class KVView:
    """Committed K and V [B, L, N, H, S, D], and each entry's age in frames: 1 is the frame before; 0 empty."""

    k_BLNHSD: Tensor
    v_BLNHSD: Tensor
    ages_BS: Tensor


@dataclass(frozen=True, slots=True)
class CommittedKV:
    """K and V of one clean frame [B, L, N, H, D], to be staged into a free ring entry."""

    k_BLNHD: Tensor
    v_BLNHD: Tensor


@dataclass(frozen=True, slots=True)
class CondBF:
    """Conditions and noise level of several frames of each row; used inside and in training."""

    controls_BFK: Tensor
    look_BFL: Tensor
    noise_BFZ: Tensor
    sigma_BF: Tensor

    def first(self, frames: int) -> CondBF:
        return _part(self, slice(frames), self.sigma_BF)

    def to(self, kind: torch.dtype) -> CondBF:
        return CondBF(*(t.to(kind) for t in (self.controls_BFK, self.look_BFL, self.noise_BFZ, self.sigma_BF)))

    def at(self, frame: int) -> CondB:
        return CondB(self.controls_BFK[:, frame], self.look_BFL[:, frame], self.noise_BFZ[:, frame])


@dataclass(frozen=True, slots=True)
class Features:
    """What training reads beside the pictures: registers [B, F, R, W] of targets and of contexts."""

    target: Tensor
    context: Tensor


class DreamTransformer(nn.Module):
    """Predicts clean frames; see the module's docstring. Rows never see each other."""

    def __init__(self, shape: DreamShape) -> None:
        super().__init__()
        w, c = shape.width, shape.channels
        self.shape = shape
        self.inward, self.context_inward = TiledLinear(3 * c, w, PICTURE), TiledLinear(3 * c, w, PICTURE)
        self.place = nn.Parameter(torch.randn(shape.tokens, w) * 0.02)
        self.context = Spatial(shape)
        self.blocks = nn.ModuleList(Temporal(shape) if kind == "T" else Spatial(shape) for kind in shape.layout)
        self.from_sigma = nn.Sequential(TiledLinear(64, w, 1), nn.SiLU(), TiledLinear(w, w, 1))
        self.from_controls, self.from_look = TiledLinear(shape.controls, w, 1), TiledLinear(shape.look, w, 1)
        self.from_noise = TiledLinear(shape.noise, w, 1, bias=False)
        self.stream = nn.Parameter(torch.zeros(2, w))
        self.mix = TiledLinear(w, w, 1)
        self.modulation, self.final_modulation = TiledLinear(w, 6 * w, 1), TiledLinear(w, 2 * w, 1)
        self.outward = TiledLinear(w, c, PICTURE)
        for layer in (self.modulation, self.final_modulation, self.outward):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        for block in self.blocks:
            if isinstance(block, Temporal):
                nn.init.zeros_(block.age_bias)

    # ---- served ----

    def denoise(self, x_BPC: Tensor, history_B2PC: Tensor, sigma_B: Tensor, cond: CondB, kv: KVView) -> Tensor:
        """The clean picture [B, P, C] seen in noisy `x`; history = [previous frame, the one before]."""
        c = self._condition(_single(cond, sigma_B), _TARGET)
        predicted, _ = self._predict(x_BPC[:, None], history_B2PC[:, None], sigma_B[:, None], c, *_past(kv))
        return predicted[:, 0].clamp(-CLAMP, CLAMP)

    def commit(self, history_B3PC: Tensor, cond: CondB) -> CommittedKV:
        """K and V of the newest clean frame; history = [it, the one before, the one before that]."""
        sigma_B = history_B3PC.new_full((history_B3PC.shape[0],), CONTEXT_SIGMA)
        c = self._condition(_single(cond, sigma_B), _CONTEXT)
        remembered, _ = self._remember(history_B3PC[:, None], c)
        k, v = (torch.stack(list(layers), 1)[..., 0, :] for layers in zip(*remembered, strict=True))
        return CommittedKV(k, v)

    def remembered(self, pictures_BFPC: Tensor, cond: CondBF) -> tuple[Tensor, Tensor]:
        """`commit` of frames 2 .. F-1 at once: K and V [B, L, N, H, F-2, D]; levels are CONTEXT_SIGMA."""
        history = torch.stack([pictures_BFPC[:, 2:], pictures_BFPC[:, 1:-1], pictures_BFPC[:, :-2]], 2)
        frames = slice(2, pictures_BFPC.shape[1])
        level = torch.full(pictures_BFPC[:, 2:, 0, 0].shape, CONTEXT_SIGMA, dtype=pictures_BFPC.dtype)
        part = CondBF(cond.controls_BFK[:, frames], cond.look_BFL[:, frames], cond.noise_BFZ[:, frames], level)
        layers, _ = self._remember(history, self._condition(part, _CONTEXT))
        k, v = (torch.stack(list(both), 1) for both in zip(*layers, strict=True))
        return k, v

    # ---- trained ----

    def two_stream(
        self, context_BFPC: Tensor, noisy_BTPC: Tensor, context_sigma_BF: Tensor, cond: CondBF, reach_B: Tensor
    ) -> tuple[Tensor, Features]:
        """Clean predictions [B, T, P, C] for the last T of F frames, each from contexts before it alone.

            contexts c2 .. c(F-2), lightly noised, give K and V; target x_i sees those of c_j, j < i, and itself
        `cond.sigma_BF` holds the targets' levels (those of other frames are not read).
        A row sees at most `reach_B` frames back through K and V.
        """
        frames, targets = context_BFPC.shape[1], noisy_BTPC.shape[1]
        history = torch.stack([context_BFPC[:, 2:-1], context_BFPC[:, 1:-2], context_BFPC[:, :-3]], 2)
        c = self._condition(_part(cond, slice(2, -1), context_sigma_BF), _CONTEXT)
        remembered, kept = self._remember(history, c)
        first = frames - targets
        before = torch.stack([context_BFPC[:, first - 1 : -1], context_BFPC[:, first - 2 : -2]], 2)
        ages = torch.arange(first, frames)[:, None] - torch.arange(2, frames - 1)[None, :]
        ages_BFS = torch.where(ages[None] <= reach_B[:, None, None], ages[None], 0)
        c = self._condition(_part(cond, slice(first, None), cond.sigma_BF), _TARGET)
        predicted, own = self._predict(noisy_BTPC, before, cond.sigma_BF[:, first:], c, remembered, ages_BFS)
        return predicted, Features(own, kept)

    # ---- shared ----

    def _remember(self, history_BF3PC: Tensor, c_BFW: Tensor) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """K and V [B, N, H, F, D] of clean frames for each temporal block, and their registers."""
        picture = self.context_inward(torch.cat(history_BF3PC.unbind(2), -1))
        h = self._with_registers(picture)
        h = self.context(h, self._modulate(c_BFW))
        return [b.remember(h) for b in self.blocks if isinstance(b, Temporal)], h[:, :, PICTURE:]

    def _predict(
        self,
        x_BFPC: Tensor,
        before_BF2PC: Tensor,
        sigma_BF: Tensor,
        c_BFW: Tensor,
        remembered: Sequence[tuple[Tensor, Tensor]],
        ages_BFS: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Clean pictures [B, F, P, C] and the registers as the last block leaves them."""
        h = self._with_registers(self.inward(torch.cat([x_BFPC, *before_BF2PC.unbind(2)], -1)))
        modulation, past = self._modulate(c_BFW), iter(remembered)
        for block in self.blocks:
            h = block(h, modulation, *next(past), ages_BFS) if isinstance(block, Temporal) else block(h, modulation)
        shift, scale = self.final_modulation(c_BFW).unflatten(-1, (2, -1))[:, :, None].unbind(3)
        guess = first_guess(x_BFPC, before_BF2PC[:, :, 0], sigma_BF)
        return self.outward(modulated(h, shift, scale)[:, :, :PICTURE]) + guess, h[:, :, PICTURE:]

    def _with_registers(self, picture_BFPW: Tensor) -> Tensor:
        return F.pad(picture_BFPW, (0, 0, 0, REGISTERS)) + self.place

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


def first_guess(x_BFPC: Tensor, previous_BFPC: Tensor, sigma_BF: Tensor) -> Tensor:
    """The best linear guess of the clean frame from the noisy one and the previous one; at sigma 1 the previous one."""
    s = sigma_BF[..., None, None]
    clear = 1 - s
    share = MOVED * clear / (MOVED * clear.square() + s.square() + 1e-6)
    return share * x_BFPC + (1 - share * clear) * previous_BFPC


def _single(cond: CondB, sigma_B: Tensor) -> CondBF:
    return CondBF(cond.controls_BK[:, None], cond.look_BL[:, None], cond.noise_BZ[:, None], sigma_B[:, None])


def _part(cond: CondBF, frames: slice, sigma_BF: Tensor) -> CondBF:
    whole = (cond.controls_BFK, cond.look_BFL, cond.noise_BFZ, sigma_BF)
    return CondBF(*(t[:, frames] for t in whole))


def _past(kv: KVView) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    layers = zip(kv.k_BLNHSD.unbind(1), kv.v_BLNHSD.unbind(1), strict=True)
    return list(layers), kv.ages_BS[:, None]
