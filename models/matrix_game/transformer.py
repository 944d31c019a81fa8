"""The Matrix-Game 2.0 transformer over one chunk of one world; parameters are named as in the published checkpoint.

    block   self attention (chunk and past) | image attention | [keyboard and mouse] | feed forward
    action  mouse: each token over time, its features and 12 frames of motion          (first layers only)
            keyboard: each token over time asks one key per latent frame

Writes nothing: fresh keys and values come back. Legend: C channels, F latent frames, S tokens of a frame, T = F S,
M model width, N heads, D head width, A frames of actions, I image tokens. Source: 2508.13009, section 3.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..shared.video.rope import Rotation, rotate, rotation
from .card import MatrixGameSpec

ROPE_BASE = 256.0  # of the actions' time axis
Tap = Callable[[str, Tensor], None]


@dataclass(frozen=True, slots=True)
class LayerKV:
    """Rotated keys and values of one layer: tokens [T, N, D], mouse [F, S, N, D] and keys [F, N, D] of actions."""

    main: tuple[Tensor, Tensor]
    mouse: tuple[Tensor, Tensor] | None
    keyboard: tuple[Tensor, Tensor] | None


@dataclass(frozen=True, slots=True)
class Actions:
    """A = 12 + 4F - 3 frames of actions, the last of which is the chunk's last frame. `mouse_A2` None = no mouse."""

    keyboard_AK: Tensor
    mouse_A2: Tensor | None


class RMSNorm(nn.Module):
    """Over the last axis; the published action modules store a weight and never multiply by it."""

    def __init__(self, width: int, scales: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self._scales = scales

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)
        return y * self.weight if self._scales else y


class Attention(nn.Module):
    def __init__(self, spec: MatrixGameSpec) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(spec.dim, spec.dim) for _ in range(4))
        self.norm_q, self.norm_k = RMSNorm(spec.dim, True), RMSNorm(spec.dim, True)
        self._heads = (spec.heads, spec.dim // spec.heads)

    def queries(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm_q(self.q(x)).unflatten(-1, self._heads)
        return y

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.norm_k(self.k(x)).unflatten(-1, self._heads), self.v(x).unflatten(-1, self._heads)


class ActionModule(nn.Module):
    """Mouse first, then keyboard; both leave the features' width as it is."""

    def __init__(self, spec: MatrixGameSpec) -> None:
        super().__init__()
        w, d, h = spec.action_width, spec.dim, spec.action_hidden
        head = w // spec.action_heads
        self._spec, self._heads = spec, (spec.action_heads, head)
        self.keyboard_embed = nn.Sequential(nn.Linear(spec.keys, h), nn.SiLU(), nn.Linear(h, h))
        if spec.mouse:
            self.mouse_mlp = nn.Sequential(
                nn.Linear(24 + d, w), nn.GELU(approximate="tanh"), nn.Linear(w, w), nn.LayerNorm(w)
            )
            self.t_qkv = nn.Linear(w, 3 * w, bias=False)
            self.img_attn_q_norm, self.img_attn_k_norm = RMSNorm(head, False), RMSNorm(head, False)
            self.proj_mouse = nn.Linear(w, d, bias=False)
        self.key_attn_q_norm, self.key_attn_k_norm = RMSNorm(head, False), RMSNorm(head, False)
        self.mouse_attn_q = nn.Linear(d, w, bias=False)
        self.keyboard_attn_kv = nn.Linear(h * 12, 2 * w, bias=False)
        self.proj_keyboard = nn.Linear(w, d, bias=False)

    def forward(
        self, x_TM: Tensor, actions: Actions, turn: Rotation, past: LayerKV | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor] | None, tuple[Tensor, Tensor]]:
        """Features with both added, fresh mouse and keyboard keys and values."""
        x_FSM = x_TM.reshape(self._spec.chunk, -1, x_TM.shape[-1])
        mouse = None
        if actions.mouse_A2 is not None:
            y, mouse = self._mouse(x_FSM, _windows(actions.mouse_A2, len(x_FSM)), turn, past)
            x_FSM = x_FSM + y
        y, keyboard = self._keyboard(x_FSM, actions, turn, past)
        return (x_FSM + y).flatten(0, 1), mouse, keyboard

    def _mouse(
        self, x_FSM: Tensor, motion_FW: Tensor, turn: Rotation, past: LayerKV | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        motion = motion_FW[:, None].expand(-1, x_FSM.shape[1], -1)
        q, k, v = self.t_qkv(self.mouse_mlp(torch.cat((x_FSM, motion), -1))).unflatten(-1, (3, *self._heads)).unbind(2)
        q, k = (rotate(norm(t), turn) for norm, t in ((self.img_attn_q_norm, q), (self.img_attn_k_norm, k)))
        seen_k, seen_v = _joined(past.mouse if past else None, k, v)
        y = _attend(*(t.transpose(0, 1) for t in (q, seen_k, seen_v)))  # over time, per token
        return self.proj_mouse(y.transpose(0, 1)), (k, v)

    def _keyboard(
        self, x_FSM: Tensor, actions: Actions, turn: Rotation, past: LayerKV | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        groups = _windows(self.keyboard_embed(actions.keyboard_AK), len(x_FSM))
        k, v = self.keyboard_attn_kv(groups).unflatten(-1, (2, *self._heads)).unbind(1)
        q = self.mouse_attn_q(x_FSM).unflatten(-1, self._heads)
        q, k = rotate(self.key_attn_q_norm(q), turn), rotate(self.key_attn_k_norm(k)[:, None], turn)[:, 0]
        seen_k, seen_v = _joined(past.keyboard if past else None, k, v)
        tokens = x_FSM.shape[1]
        y = _attend(q.transpose(0, 1), seen_k.expand(tokens, *seen_k.shape), seen_v.expand(tokens, *seen_v.shape))
        return self.proj_keyboard(y.transpose(0, 1)), (k, v)


class Block(nn.Module):
    def __init__(self, spec: MatrixGameSpec, acts: bool) -> None:
        super().__init__()
        self.self_attn, self.cross_attn = Attention(spec), Attention(spec)
        self.norm3 = nn.LayerNorm(spec.dim, eps=1e-6)
        self.ffn = nn.Sequential(
            nn.Linear(spec.dim, spec.ffn), nn.GELU(approximate="tanh"), nn.Linear(spec.ffn, spec.dim)
        )
        self.modulation = nn.Parameter(torch.randn(1, 6, spec.dim) / spec.dim**0.5)
        self.action_model = ActionModule(spec) if acts else None


class Head(nn.Module):
    def __init__(self, spec: MatrixGameSpec) -> None:
        super().__init__()
        self.head = nn.Linear(spec.dim, spec.channels * 4)
        self.modulation = nn.Parameter(torch.randn(1, 2, spec.dim) / spec.dim**0.5)


class ImageProjection(nn.Module):
    def __init__(self, spec: MatrixGameSpec) -> None:
        super().__init__()
        i = spec.image_width
        self.proj = nn.Sequential(
            nn.LayerNorm(i), nn.Linear(i, i), nn.GELU(), nn.Linear(i, spec.dim), nn.LayerNorm(spec.dim)
        )


class MatrixGameTransformer(nn.Module):
    """See the module docstring."""

    def __init__(self, spec: MatrixGameSpec) -> None:
        super().__init__()
        self.spec = spec
        d = spec.dim
        self.patch_embedding = nn.Conv3d(2 * spec.channels + 4, d, (1, 2, 2), (1, 2, 2))
        self.time_embedding = nn.Sequential(nn.Linear(spec.freq_dim, d), nn.SiLU(), nn.Linear(d, d))
        self.time_projection = nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d))
        self.img_emb = ImageProjection(spec)
        self.blocks = nn.ModuleList(Block(spec, layer < spec.action_layers) for layer in range(spec.layers))
        self.head = Head(spec)

    def image_kv(self, image_II: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of the opening picture's tokens for every layer."""
        tokens = self.img_emb.proj(image_II.to(self.patch_embedding.weight.dtype))
        return [block.cross_attn.keys_and_values(tokens) for block in self._layers()]

    def _layers(self) -> list[Block]:
        return [block for block in self.blocks if isinstance(block, Block)]

    def forward(
        self,
        x_CFHW: Tensor,
        sigma: float,
        image: list[tuple[Tensor, Tensor]],
        actions: Actions,
        first_frame: int,
        past: list[LayerKV] | None,
        tap: Tap | None = None,
    ) -> tuple[Tensor, list[LayerKV]]:
        """Flow [16, F, H, W] in float32 of latents, mask and picture [36, F, H, W], and fresh keys of every layer."""
        spec, device = self.spec, x_CFHW.device
        x = self.patch_embedding(x_CFHW[None].to(self.patch_embedding.weight.dtype))[0].flatten(1).T
        waves = _sinusoid(sigma * 1000, spec.freq_dim, device).to(x.dtype)
        e_M = self.time_embedding(waves)
        e_6M = self.time_projection(e_M).unflatten(0, (6, -1))
        turn = rotation(spec.dim // spec.heads, spec.rows // 2, spec.columns // 2, first_frame, spec.chunk, device)
        time_turn = _time_rotation(spec, first_frame, device)
        fresh = []
        for layer, block in enumerate(self._layers()):
            e = (block.modulation[0] + e_6M).unbind(0)
            before = None if past is None else past[layer]
            y = _norm(x) * (1 + e[1]) + e[0]
            k, v = block.self_attn.keys_and_values(y)
            k = rotate(k, turn)
            seen = _joined(before.main if before else None, k, v)
            q = rotate(block.self_attn.queries(y), turn)
            x = x + block.self_attn.o(_attend(q[None], seen[0][None], seen[1][None])[0]) * e[2]
            q = block.cross_attn.queries(block.norm3(x))
            x = x + block.cross_attn.o(_attend(q[None], image[layer][0][None], image[layer][1][None])[0])
            mouse = keyboard = None
            if block.action_model is not None:
                x, mouse, keyboard = block.action_model(x, actions, time_turn, before)
            x = x + block.ffn(_norm(x) * (1 + e[4]) + e[3]) * e[5]
            fresh.append(LayerKV((k, v), mouse, keyboard))
            if tap is not None:
                tap(f"block {layer}", x)
        shift, scale = (self.head.modulation[0] + e_M).unbind(0)
        y = self.head.head(_norm(x) * (1 + scale) + shift).float()
        y = y.view(spec.chunk, spec.rows // 2, spec.columns // 2, 2, 2, spec.channels).permute(5, 0, 1, 3, 2, 4)
        return y.reshape(spec.channels, spec.chunk, spec.rows, spec.columns), fresh


def _norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], eps=1e-6)


def _windows(values_AW: Tensor, frames: int) -> Tensor:
    """[F, 12 W]: of latent frame i the 12 action frames before its last one."""
    return torch.stack([values_AW[4 * i : 4 * i + 12].flatten() for i in range(frames)])


def _joined(past: tuple[Tensor, Tensor] | None, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return (k, v) if past is None else (torch.cat((past[0], k)), torch.cat((past[1], v)))


def _attend(q_BTND: Tensor, k_BSND: Tensor, v_BSND: Tensor) -> Tensor:
    """[B, T, N D]."""
    q, k, v = (t.transpose(1, 2) for t in (q_BTND, k_BSND, v_BSND))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def _sinusoid(timestep: float, width: int, device: torch.device) -> Tensor:
    waves = 10000.0 ** (-torch.arange(width // 2, dtype=torch.float64, device=device) / (width // 2))
    return torch.cat(((timestep * waves).cos(), (timestep * waves).sin())).float()


def _time_rotation(spec: MatrixGameSpec, first_frame: int, device: torch.device) -> Rotation:
    """Actions are turned by time alone, in the first `action_time_width` of a head's values; the rest stand still."""
    pairs, head = spec.action_time_width // 2, spec.action_width // spec.action_heads
    frequencies = ROPE_BASE ** (-torch.arange(pairs, dtype=torch.float64, device=device) / pairs)
    times = torch.arange(first_frame, first_frame + spec.chunk, dtype=torch.float64, device=device)
    angles = torch.zeros(spec.chunk, head // 2, dtype=torch.float64, device=device)
    angles[:, :pairs] = times[:, None] * frequencies
    return Rotation(angles.cos().float()[:, None, None], angles.sin().float()[:, None, None])
