"""The causal latent transformer of the driving world, as pure functions of tensors.

A picture is 40 tokens. Blocks alternate spatial attention inside a frame and causal attention over time per
token position, to K and V kept of the frames in a window. `denoise` predicts the clean frame from a noisy one;
`commit` makes K and V of a clean one from that frame and two before it alone, so that what is kept never reaches
back farther than window + 2 frames. Nothing here writes a cache, and nothing knows sessions.

Besides the picture's tokens a frame has a few memory tokens (memory.py). `denoise` has recall move them on first,
so the picture is painted from the memory of the frame it belongs to.

Legend: B rows, F frames, T targets, N tokens of a frame, C channels of a token, W width, H heads, D width of a
head, S kept frames, L temporal blocks (in CondB: look), K controls, I innovations (in x: input channels), 6 = AdaLN.
Sources: two-stream training of clean contexts and noisy targets; AdaLN-single, PixArt-alpha (2310.00426, 2.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..shared.road.blocks import CommittedKV, KVView, Spatial, Temporal, TiledLinear, modulated
from .blocks import DriveShape, TokenLinear
from .camera import VIEW, Camera
from .memory import MEMORY_TOKENS, PICTURE_TOKENS
from .recall import Recall

CONTEXT_SIGMA = 0.08  # the noise level committed frames are labelled with
CLAMP = 5.0  # |latent| of a predicted frame never exceeds this
_WAVES = torch.exp(torch.linspace(0, math.log(200.0), 32))  # frequencies of the noise level's embedding
_CONTEXT, _TARGET = 0, 1  # stream labels


@dataclass(frozen=True, slots=True)
class CondB:
    """What conditions one frame of each row."""

    controls_BK: Tensor
    look_BL: Tensor
    innovations_BI: Tensor


@dataclass(frozen=True, slots=True)
class CondBF:
    """Conditions and noise level of several frames of each row; used inside and in training."""

    controls_BFK: Tensor
    look_BFL: Tensor
    innovations_BFI: Tensor
    sigma_BF: Tensor


class DriveTransformer(nn.Module):
    """Predicts clean frames; see the module's docstring. Rows never see each other."""

    def __init__(self, shape: DriveShape) -> None:
        super().__init__()
        w, c = shape.width, shape.channels
        self.shape = shape
        self.inward, self.context_inward = TokenLinear(3 * c, w), TokenLinear(3 * c, w)
        self.camera, self.seeing = Camera(), TiledLinear(VIEW, w, PICTURE_TOKENS, bias=False)
        self.place = nn.Parameter(torch.randn(shape.tokens, w) * 0.02)
        self.context = Spatial(shape)
        self.blocks = nn.ModuleList(Temporal(shape) if kind == "T" else Spatial(shape) for kind in shape.layout)
        self.from_sigma = nn.Sequential(TiledLinear(64, w, 1), nn.SiLU(), TiledLinear(w, w, 1))
        self.from_controls, self.from_look = TiledLinear(shape.controls, w, 1), TiledLinear(shape.look, w, 1)
        self.from_innovations = TiledLinear(shape.innovations, w, 1)
        self.stream = nn.Parameter(torch.zeros(2, w))
        self.mix = TiledLinear(w, w, 1)
        self.modulation, self.final_modulation = TiledLinear(w, 6 * w, 1), TiledLinear(w, 2 * w, 1)
        self.outward, self.skip = TiledLinear(w, c, PICTURE_TOKENS), TiledLinear(3 * c, c, PICTURE_TOKENS)
        self.recall = Recall(shape.controls, shape.innovations)
        nn.init.zeros_(self.inward.picture.weight)  # first the picture is painted from the memory alone
        for layer in (self.modulation, self.final_modulation, self.outward, self.skip):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    # ---- served ----

    def denoise(self, x_BNC: Tensor, history_B2NC: Tensor, sigma_B: Tensor, cond: CondB, kv: KVView) -> Tensor:
        """The clean frame [B, N, C] seen in noisy `x`; history = [previous frame, the one before]."""
        c = self._condition(_single(cond, sigma_B), _TARGET)
        memory_BMC = self.recall(history_B2NC[:, 0, PICTURE_TOKENS:], cond.controls_BK, cond.innovations_BI)
        noisy_BNC = torch.cat([x_BNC[:, :PICTURE_TOKENS], memory_BMC], 1)
        x = self._target_input(noisy_BNC[:, None], history_B2NC[:, None], sigma_B[:, None])
        view = self.camera(memory_BMC, cond.look_BL)[:, None]
        return self._predict(x, view, c, *_past(kv))[:, 0].clamp(-CLAMP, CLAMP)

    def commit(self, history_B3NC: Tensor, cond: CondB) -> CommittedKV:
        """K and V of the newest clean frame; history = [it, the one before, the one before that]."""
        sigma_B = torch.full((history_B3NC.shape[0],), CONTEXT_SIGMA, device=history_B3NC.device)
        remembered = self._remember(history_B3NC[:, None], self._condition(_single(cond, sigma_B), _CONTEXT))
        k, v = (torch.stack(list(layers), 1)[..., 0, :] for layers in zip(*remembered, strict=True))
        return CommittedKV(k, v)

    def commit_denoise(
        self, history_B3NC: Tensor, commit_cond: CondB, x_BNC: Tensor, sigma_B: Tensor, cond: CondB, kv: KVView
    ) -> tuple[CommittedKV, Tensor]:
        """`commit` of the newest frame and `denoise` of the one after it; ages as of the committed frame."""
        new = self.commit(history_B3NC, commit_cond)
        older_BS = torch.where(kv.ages_BS > 0, kv.ages_BS + 1, 0)
        newest_B1 = torch.ones_like(older_BS[:, :1])
        view = KVView(
            torch.cat([kv.k_BLNHSD, new.k_BLNHD[..., None, :]], 4),
            torch.cat([kv.v_BLNHSD, new.v_BLNHD[..., None, :]], 4),
            torch.cat([older_BS, newest_B1], 1),
        )
        return new, self.denoise(x_BNC, history_B3NC[:, :2], sigma_B, cond, view)

    # ---- trained ----

    def two_stream(self, context_BFNC: Tensor, noisy_BTNC: Tensor, context_sigma_BF: Tensor, cond: CondBF) -> Tensor:
        """Clean predictions [B, T, N, C] for frames 2 .. F-1, T = F-2, each from contexts before it alone.

            contexts c2 c3 .. c(F-2) (lightly noised) give K and V; target x_i sees those of c_j, j < i, and itself
        `cond.sigma_BF` holds the targets' noise levels (its first two frames are not read). The targets' memory tokens
        are taken as they are: noise is for the picture alone.
        """
        targets = noisy_BTNC.shape[1]
        history = torch.stack([context_BFNC[:, 2:-1], context_BFNC[:, 1:-2], context_BFNC[:, :-3]], 2)
        c = self._condition(_part(cond, slice(2, -1), context_sigma_BF), _CONTEXT)
        remembered = self._remember(history, c)
        before = torch.stack([context_BFNC[:, 1:-1], context_BFNC[:, :-2]], 2)
        x = self._target_input(noisy_BTNC, before, cond.sigma_BF[:, 2:])
        frame = torch.arange(targets, device=x.device)
        ages = (frame[:, None] - frame[None, :-1])[None]
        view = self.camera(noisy_BTNC[:, :, PICTURE_TOKENS:], cond.look_BFL[:, 2:])
        c = self._condition(_part(cond, slice(2, None), cond.sigma_BF), _TARGET)
        return self._predict(x, view, c, remembered, ages)

    def paint(self, memory_BMC: Tensor, cond: CondB) -> Tensor:
        """The picture [B, 40, C] as its memory alone shows it: pure noise, no frame before it, nothing kept."""
        rows, s = memory_BMC.shape[0], self.shape
        x = F.pad(memory_BMC, (0, 2 * s.channels, PICTURE_TOKENS, 0))[:, None]
        view = self.camera(memory_BMC, cond.look_BL)[:, None]
        c = self._condition(_single(cond, memory_BMC.new_ones(rows)), _TARGET)
        nothing = memory_BMC.new_zeros(rows, s.tokens, s.heads, 0, s.head_width)
        ages = torch.zeros(1, 1, 0, dtype=torch.int64, device=memory_BMC.device)
        return self._predict(x, view, c, [(nothing, nothing)] * s.temporal, ages)[:, 0, :PICTURE_TOKENS]

    # ---- shared ----

    def _remember(self, history_BF3NC: Tensor, c_BFW: Tensor) -> list[tuple[Tensor, Tensor]]:
        """K and V [B, N, H, F, D] of clean frames for each temporal block."""
        h = self.context_inward(torch.cat(history_BF3NC.unbind(2), -1)) + self.place
        h = self.context(h, self._modulate(c_BFW))
        return [block.remember(h) for block in self.blocks if isinstance(block, Temporal)]

    def _predict(
        self,
        x_BFNI: Tensor,
        view_BFNV: Tensor,
        c_BFW: Tensor,
        remembered: Sequence[tuple[Tensor, Tensor]],
        ages_BFS: Tensor,
    ) -> Tensor:
        """Clean frames [B, F, N, C] from inputs (I = 3 C) and what the camera sees of their memory."""
        h, modulation, past = self.inward(x_BFNI) + self.place, self._modulate(c_BFW), iter(remembered)
        h = h + F.pad(self.seeing(view_BFNV), (0, 0, 0, MEMORY_TOKENS))
        for block in self.blocks:
            h = block(h, modulation, *next(past), ages_BFS) if isinstance(block, Temporal) else block(h, modulation)
        shift, scale = self.final_modulation(c_BFW).unflatten(-1, (2, -1))[:, :, None].unbind(3)
        painted = modulated(h, shift, scale)[:, :, :PICTURE_TOKENS]
        picture = self.outward(painted) + self.skip(x_BFNI[:, :, :PICTURE_TOKENS])
        return torch.cat([picture, x_BFNI[:, :, PICTURE_TOKENS:, : self.shape.channels]], 2)

    def _target_input(self, x_BFNC: Tensor, before_BF2NC: Tensor, sigma_BF: Tensor) -> Tensor:
        """Noise is dimmed by its level, so that pure noise (sigma 1) is not seen at all; memory has none."""
        picture, memory = x_BFNC[:, :, :PICTURE_TOKENS], x_BFNC[:, :, PICTURE_TOKENS:]
        dim = (1 - sigma_BF)[:, :, None, None]
        return torch.cat([torch.cat([picture * dim, memory], 2), before_BF2NC[:, :, 0], before_BF2NC[:, :, 1]], -1)

    def _modulate(self, c_BFW: Tensor) -> Tensor:
        m: Tensor = self.modulation(c_BFW).unflatten(-1, (6, -1))[:, :, None]
        return m

    def _condition(self, cond: CondBF, stream: int) -> Tensor:
        phase = cond.sigma_BF[..., None] * _WAVES.to(cond.sigma_BF.device)
        level = self.from_sigma(torch.cat([phase.sin(), phase.cos()], -1))
        c = level + self.from_controls(cond.controls_BFK) + self.from_look(cond.look_BFL)
        c = c + self.from_innovations(cond.innovations_BFI) + self.stream[stream]
        mixed: Tensor = F.silu(self.mix(F.silu(c)))
        return mixed


def _single(cond: CondB, sigma_B: Tensor) -> CondBF:
    return CondBF(cond.controls_BK[:, None], cond.look_BL[:, None], cond.innovations_BI[:, None], sigma_B[:, None])


def _part(cond: CondBF, frames: slice, sigma_BF: Tensor) -> CondBF:
    whole = (cond.controls_BFK, cond.look_BFL, cond.innovations_BFI, sigma_BF)
    return CondBF(*(t[:, frames] for t in whole))


def _past(kv: KVView) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    layers = zip(kv.k_BLNHSD.unbind(1), kv.v_BLNHSD.unbind(1), strict=True)
    return list(layers), kv.ages_BS[:, None]
