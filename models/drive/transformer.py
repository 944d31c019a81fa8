"""The causal latent transformer of the driving world, as pure functions of tensors.

A frame is 40 tokens. Blocks alternate spatial attention inside a frame and causal attention over time per
token position, through a window of past frames kept as K and V. `denoise` predicts the clean frame from a noisy
one, `commit` gives the K and V of a clean one; nothing here writes a cache, and nothing knows sessions.

Legend: B rows, F frames, N tokens of a frame, C channels of a token, W width, H heads, D width of a head,
S ring entries (window + 1, in ring order), L temporal blocks, K controls, I innovations, J controls' look.
Source: two-stream training of clean context and noisy targets; AdaLN-single after PixArt-alpha (2310.00426, 2.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn import functional as F

CONTEXT_SIGMA = 0.08  # the noise level committed frames are labelled with
CLAMP = 5.0  # |latent| of a predicted frame never exceeds this
_MASKED = -1e4
_WAVES = torch.exp(torch.linspace(0, math.log(200.0), 32))  # frequencies of the noise level's embedding
_CONTEXT, _TARGET = 0, 1  # stream labels


@dataclass(frozen=True, slots=True)
class DriveShape:
    """All sizes; two models with equal shapes can exchange weights."""

    width: int = 192
    heads: int = 6
    layout: str = "STSTSTS"
    window: int = 11
    tokens: int = 40
    channels: int = 32
    controls: int = 4
    look: int = 12
    innovations: int = 5

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
    innovations_BI: Tensor


@dataclass(frozen=True, slots=True)
class KVView:
    """Committed K and V in ring order [B, L, N, H, S, D], and the age of each entry in frames.

    Ages are relative to the frame being committed (`commit`, `commit_denoise`) or generated (`denoise`):
    1 is the frame just before it; 0 marks an empty entry. Entries older than the window are ignored.
    """

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
    innovations_BFI: Tensor
    sigma_BF: Tensor


Temporal = Callable[[int, "Block", Tensor, Tensor, Tensor], Tensor]


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
    """Softmax attention by plain matmuls: on a CPU in bf16 faster than the fused kernel, forward and backward."""
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    if bias is not None:
        scores = scores + bias
    return scores.softmax(-1) @ v


class Block(nn.Module):
    """Attention (spatial or temporal) and a squared-ReLU MLP, both modulated by the condition."""

    def __init__(self, shape: DriveShape, temporal: bool) -> None:
        super().__init__()
        w = shape.width
        self.heads, self.head_width, self.temporal = shape.heads, shape.head_width, temporal
        self.qkv, self.out = nn.Linear(w, 3 * w, bias=False), nn.Linear(w, w, bias=False)
        self.up, self.down = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)
        self.table = nn.Parameter(torch.zeros(6, w))
        if temporal:
            self.age_bias = nn.Parameter(torch.zeros(shape.heads, shape.window + 1))
        for zeroed in (self.out.weight, self.down.weight, self.down.bias):
            nn.init.zeros_(zeroed)

    def project(self, h_BFNW: Tensor, shift: Tensor, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Normalised, modulated q, k, v, each [B, F, N, H, D]; q and k have unit RMS."""
        y = F.layer_norm(h_BFNW, h_BFNW.shape[-1:]) * (1 + scale) + shift
        q, k, v = self.qkv(y).unflatten(-1, (3, self.heads, self.head_width)).unbind(-3)
        unit = (self.head_width,)
        return F.rms_norm(q, unit).to(v.dtype), F.rms_norm(k, unit).to(v.dtype), v

    def finish(
        self, h_BFNW: Tensor, attended_BFNHD: Tensor, gate: Tensor, mlp: tuple[Tensor, Tensor, Tensor]
    ) -> Tensor:
        shift, scale, mlp_gate = mlp
        h = h_BFNW + (1 + gate) * self.out(attended_BFNHD.flatten(-2))
        y = F.layer_norm(h, h.shape[-1:]) * (1 + scale) + shift
        z: Tensor = h + (1 + mlp_gate) * self.down(F.relu(self.up(y)).square())
        return z

    def bias_for(self, ages: Tensor) -> Tensor:
        """Learned bias [H, *ages.shape] of attending that many frames back; -1 marks what must not be seen."""
        seen = (ages >= 0) & (ages < self.age_bias.shape[1])
        bias = self.age_bias[:, ages.clamp(0, self.age_bias.shape[1] - 1)]
        return bias.masked_fill(~seen, _MASKED)


class DriveTransformer(nn.Module):
    """Predicts clean frames; see the module's docstring. Rows never see each other."""

    def __init__(self, shape: DriveShape) -> None:
        super().__init__()
        w, c = shape.width, shape.channels
        self.shape = shape
        self.inward = nn.Linear(3 * c, w)
        self.place = nn.Parameter(torch.randn(shape.tokens, w) * 0.02)
        self.blocks = nn.ModuleList(Block(shape, kind == "T") for kind in shape.layout)
        self.from_sigma = nn.Sequential(nn.Linear(64, w), nn.SiLU(), nn.Linear(w, w))
        self.from_controls = nn.Linear(shape.controls, w)
        self.from_look = nn.Linear(shape.look, w)
        self.from_innovations = nn.Linear(shape.innovations, w)
        self.stream = nn.Parameter(torch.zeros(2, w))
        self.mix = nn.Linear(w, w)
        self.modulation = nn.Linear(w, 6 * w)
        self.final_modulation = nn.Linear(w, 2 * w)
        self.outward = nn.Linear(w, c)
        self.skip = nn.Linear(3 * c, c)
        for layer in (self.modulation, self.final_modulation, self.outward, self.skip):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        with torch.no_grad():
            self.skip.weight[:, c : 2 * c] = torch.eye(c)  # starts as "the picture stays as it is"
        self._last_temporal = shape.layout.rfind("T")

    # ---- served ----

    def denoise(self, x_BNC: Tensor, history_B2NC: Tensor, sigma_B: Tensor, cond: CondB, kv: KVView) -> Tensor:
        """The clean frame [B, N, C] seen in noisy `x`; history = [previous frame, the one before]."""
        x = self._target_input(x_BNC[:, None], history_B2NC[:, None], sigma_B[:, None])
        c = self._condition(_frames([cond], [sigma_B]), [_TARGET])
        ages_BFS = kv.ages_BS[:, None]
        x0, _ = self._streamed(x, c, kv, _bias_ages(ages_BFS, [[0]]), kept=1)
        return x0[:, 0].clamp(-CLAMP, CLAMP)

    def commit(self, history_B3NC: Tensor, cond: CondB, kv: KVView) -> CommittedKV:
        """K and V of the newest clean frame; history = [it, the one before, the one before that]."""
        x = _context_input(history_B3NC[:, None])
        c = self._condition(_frames([cond], [self._context_sigma(history_B3NC)]), [_CONTEXT])
        _, committed = self._streamed(x, c, kv, _bias_ages(kv.ages_BS[:, None], [[0]]), kept=0)
        return CommittedKV(committed.k_BLNHD[..., 0, :], committed.v_BLNHD[..., 0, :])

    def commit_denoise(
        self, history_B3NC: Tensor, commit_cond: CondB, x_BNC: Tensor, sigma_B: Tensor, cond: CondB, kv: KVView
    ) -> tuple[CommittedKV, Tensor]:
        """`commit` of the newest frame and `denoise` of the one after it, in one pass; ages as for `commit`."""
        target = self._target_input(x_BNC[:, None], history_B3NC[:, None, :2], sigma_B[:, None])
        x = torch.cat([_context_input(history_B3NC[:, None]), target], 1)
        sigmas = [self._context_sigma(history_B3NC), sigma_B]
        c = self._condition(_frames([commit_cond, cond], sigmas), [_CONTEXT, _TARGET])
        older = torch.where(kv.ages_BS > 0, kv.ages_BS + 1, 0)
        ages = _bias_ages(torch.stack([kv.ages_BS, older], 1), [[0, -1], [1, 0]])
        x0, new = self._streamed(x, c, kv, ages, kept=1)
        return CommittedKV(new.k_BLNHD[..., 0, :], new.v_BLNHD[..., 0, :]), x0[:, 0].clamp(-CLAMP, CLAMP)

    # ---- trained ----

    def two_stream(self, context_BFNC: Tensor, noisy_BTNC: Tensor, context_sigma_BF: Tensor, cond: CondBF) -> Tensor:
        """Clean predictions [B, T, N, C] for frames 2 .. F-1, T = F-2, each from contexts before it alone.

            stream    c2 c3 .. c(F-2) | x2 x3 .. x(F-1)      c = lightly noised context, x = noisy target
            x_i sees c_j for j < i within the window, and itself; c_i sees c_j for j <= i
        `cond.sigma_BF` holds the targets' noise levels (its first two frames are not read).
        """
        targets = noisy_BTNC.shape[1]
        before = torch.stack([context_BFNC[:, 1:-1], context_BFNC[:, :-2]], 2)
        x = torch.cat(
            [
                _context_input(torch.stack([context_BFNC[:, 2:-1], context_BFNC[:, 1:-2], context_BFNC[:, :-3]], 2)),
                self._target_input(noisy_BTNC, before, cond.sigma_BF[:, 2:]),
            ],
            1,
        )
        both = [torch.cat([t[:, 2:-1], t[:, 2:]], 1) for t in (cond.controls_BFK, cond.look_BFL, cond.innovations_BFI)]
        sigma = torch.cat([context_sigma_BF[:, 2:-1], cond.sigma_BF[:, 2:]], 1)
        stream = [_CONTEXT] * (targets - 1) + [_TARGET] * targets
        c = self._condition(CondBF(*both, sigma), stream)
        ages = _training_ages(targets).to(x.device)

        def temporal(layer: int, block: Block, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = (t.permute(0, 2, 3, 1, 4) for t in (q, k, v))  # [B, N, H, F, D]
            bias = block.bias_for(ages[-q.shape[3] :]).to(q.dtype)
            return attend(q, k, v, bias).permute(0, 3, 1, 2, 4)

        return self._core(x, c, temporal, kept=targets)

    # ---- shared ----

    def _target_input(self, x_BFNC: Tensor, before_BF2NC: Tensor, sigma_BF: Tensor) -> Tensor:
        """Noise is dimmed by its level, so that pure noise (sigma 1) is not seen at all."""
        dim = (1 - sigma_BF)[:, :, None, None].to(x_BFNC.dtype)
        return torch.cat([x_BFNC * dim, before_BF2NC[:, :, 0], before_BF2NC[:, :, 1]], -1)

    def _context_sigma(self, like: Tensor) -> Tensor:
        return torch.full((like.shape[0],), CONTEXT_SIGMA, device=like.device)

    def _condition(self, cond: CondBF, stream: list[int]) -> Tensor:
        dtype = self.inward.weight.dtype
        phase = cond.sigma_BF.float()[..., None] * _WAVES.to(cond.sigma_BF.device)
        level = self.from_sigma(torch.cat([phase.sin(), phase.cos()], -1).to(dtype))
        c = level + self.from_controls(cond.controls_BFK.to(dtype)) + self.from_look(cond.look_BFL.to(dtype))
        c = c + self.from_innovations(cond.innovations_BFI.to(dtype)) + self.stream[stream]
        mixed: Tensor = F.silu(self.mix(F.silu(c)))
        return mixed

    def _core(self, x_BFNI: Tensor, c_BFW: Tensor, temporal: Temporal, kept: int) -> Tensor:
        """All blocks. After the last K and V only the last `kept` frames are carried on; kept = 0 ends there."""
        h = self.inward(x_BFNI) + self.place
        modulation = self.modulation(c_BFW).unflatten(-1, (6, -1))[:, :, None]
        for i, block in enumerate(self.blocks):
            shift, scale, gate, *mlp = (modulation + block.table).unbind(3)
            q, k, v = block.project(h, shift, scale)
            if i == self._last_temporal:
                n = h.shape[1] - kept
                h, q, gate, modulation = h[:, n:], q[:, n:], gate[:, n:], modulation[:, n:]
                mlp = [m[:, n:] for m in mlp]
            if block.temporal:
                attended = temporal(i, block, q, k, v)
                if kept == 0 and i == self._last_temporal:
                    return h
            else:
                q, k, v = (t.transpose(2, 3) for t in (q, k, v))
                attended = attend(q, k, v, None).transpose(2, 3)
            h = block.finish(h, attended, gate, (mlp[0], mlp[1], mlp[2]))
        shift, scale = self.final_modulation(c_BFW[:, -kept:]).unflatten(-1, (2, -1))[:, :, None].unbind(3)
        y = F.layer_norm(h, h.shape[-1:]) * (1 + scale) + shift
        x0: Tensor = self.outward(y) + self.skip(x_BFNI[:, -kept:])
        return x0

    def _streamed(
        self, x_BFNI: Tensor, c_BFW: Tensor, kv: KVView, ages_BFA: Tensor, kept: int
    ) -> tuple[Tensor, CommittedKV]:
        """One pass over F new frames that also see the ring. A = S + F keys. New K and V come back [B, L, N, H, F, D]."""
        fresh_k: list[Tensor] = []
        fresh_v: list[Tensor] = []

        def temporal(layer: int, block: Block, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = (t.permute(0, 2, 3, 1, 4) for t in (q, k, v))  # [B, N, H, F, D]
            at = len(fresh_k)
            fresh_k.append(k)
            fresh_v.append(v)
            rows = q.shape[3]
            if rows == 0:
                return q
            bias = block.bias_for(ages_BFA[:, -rows:]).permute(1, 0, 2, 3)[:, None].to(q.dtype)  # [B, 1, H, F, A]
            keys, values = torch.cat([kv.k_BLNHSD[:, at], k], 3), torch.cat([kv.v_BLNHSD[:, at], v], 3)
            return attend(q, keys, values, bias).permute(0, 3, 1, 2, 4)

        x0 = self._core(x_BFNI, c_BFW, temporal, kept)
        return x0, CommittedKV(torch.stack(fresh_k, 1), torch.stack(fresh_v, 1))


def _frames(conds: list[CondB], sigmas_B: list[Tensor]) -> CondBF:
    return CondBF(
        torch.stack([c.controls_BK for c in conds], 1),
        torch.stack([c.look_BL for c in conds], 1),
        torch.stack([c.innovations_BI for c in conds], 1),
        torch.stack(sigmas_B, 1),
    )


def _context_input(history_BF3NC: Tensor) -> Tensor:
    return torch.cat(history_BF3NC.unbind(2), -1)


def _bias_ages(ring_BFS: Tensor, fresh: list[list[int]]) -> Tensor:
    """Ages of ring entries and of the pass's own frames [B, F, S + F]; -1 is unseen."""
    own = torch.tensor(fresh, device=ring_BFS.device).expand(ring_BFS.shape[0], -1, -1)
    return torch.cat([torch.where(ring_BFS > 0, ring_BFS, -1), own], 2)


def _training_ages(targets: int) -> Tensor:
    """Which frame of the two streams sees which, and how many frames back it lies; -1 is unseen."""
    frame = torch.tensor([*range(targets - 1), *range(targets)])
    context = torch.arange(2 * targets - 1) < targets - 1
    back = frame[:, None] - frame[None]
    on_context = torch.where(context[:, None], back >= 0, back > 0) & context[None]
    itself = ~context[:, None] & ~context[None] & (back == 0)
    return torch.where(on_context | itself, back, -1)


def load_transformer(path: Path, shape: DriveShape, dtype: torch.dtype = torch.bfloat16) -> DriveTransformer:
    """Read the weights, set for inference in `dtype`."""
    model = DriveTransformer(shape)
    with safe_open(path, framework="pt") as file:
        model.load_state_dict({name: file.get_tensor(name).float() for name in file.keys()})  # noqa: SIM118
    ready = model.eval().requires_grad_(False).to(dtype)
    return ready
