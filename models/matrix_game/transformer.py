"""The Matrix-Game 2.0 transformer over a chunk of each row; parameters are named as in the published checkpoint.

    block   self attention (chunk and past) | image attention | [keyboard and mouse] | feed forward
    action  mouse: each token over time, its features and 12 frames of motion          (first layers only)
            keyboard: each token over time asks one key per latent frame

What is seen of the past, and where fresh keys and values go, the pass's window says. In its `invariant` form a row has
the bits it has alone, whoever shares the pass. Legend: B rows, C channels, F latent
frames, S tokens of a frame, T = F S, M model width, N heads, D head width, P = D / 2, A frames of actions, I image
tokens. Source: 2508.13009, section 3.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from ...kernels.chunk_attention import chunk_attention
from ...kernels.norm_modulate import Norm, gate_norm_modulate, gate_residual, norm_modulate
from ...kernels.qk_norm_rope import Norms, qk_norm_rope
from ..shared.invariant import make_invariant
from ..shared.reach import Reach
from ..shared.video.rope import rotation
from .slab import Window
from .spec import MatrixGameSpec

ROPE_BASE = 256.0  # of the actions' time axis
ACTION_NORMS = Norms(each_head=True)
Probe = Callable[[str, Tensor], None]
Turn = tuple[Tensor, Tensor]  # cos and sin [B, T, P]
KV = tuple[Tensor, Tensor]  # [B, I, N, D]


@dataclass(frozen=True, slots=True)
class Actions:
    """A = 12 + 4F - 3 frames of actions, the last of which is the chunk's last frame. `mouse_BA2` None = no mouse."""

    keyboard_BAK: Tensor
    mouse_BA2: Tensor | None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all blocks of one pass share. Turns of tokens as they stand, and of those of actions by time alone; of
    `keyboard` tokens the first F are one token in F frames.
    """

    actions: Actions
    window: Window
    turn: Turn
    mouse_turn: Turn
    keyboard_turn: Turn


class RMSNorm(nn.Module):
    """Over all heads at once. The published action modules store a weight and never multiply by it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x_BTM: Tensor) -> Tensor:
        return norm_modulate(x_BTM, self.weight.expand(len(x_BTM), 1, -1), None, norm=Norm.RMS, learned=True)


class Attention(nn.Module):
    def __init__(self, spec: MatrixGameSpec) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(spec.dim, spec.dim) for _ in range(4))
        self.norm_q, self.norm_k = RMSNorm(spec.dim), RMSNorm(spec.dim)
        self._heads = (spec.heads, spec.dim // spec.heads)

    def over_chunk(self, x_BTM: Tensor, turn: Turn, reach: Reach) -> Tensor:
        """Of the chunk over itself and its past."""
        q, k, v = (project(x_BTM).unflatten(-1, self._heads) for project in (self.q, self.k, self.v))
        norms = Norms(self.norm_q.weight.view(self._heads), self.norm_k.weight.view(self._heads))
        q, k = qk_norm_rope(q, k, v, turn, norms, reach.staged)
        y: Tensor = self.o(chunk_attention(q, reach.past, (k, v)).flatten(2))
        return y

    def over_image(self, x_BTM: Tensor, image: KV) -> Tensor:
        q = self.norm_q(self.q(x_BTM)).unflatten(-1, self._heads)
        y: Tensor = self.o(chunk_attention(q, None, image).flatten(2))
        return y

    def keys_and_values(self, x_BIM: Tensor) -> KV:
        return self.norm_k(self.k(x_BIM)).unflatten(-1, self._heads), self.v(x_BIM).unflatten(-1, self._heads)


class ActionModule(nn.Module):
    """Mouse first, then keyboard; both leave the features' width as it is."""

    def __init__(self, spec: MatrixGameSpec) -> None:
        super().__init__()
        w, d, h = spec.action_width, spec.dim, spec.action_hidden
        head = w // spec.action_heads
        self._heads, self._frames = (spec.action_heads, head), spec.chunk
        self.keyboard_embed = nn.Sequential(nn.Linear(spec.keys, h), nn.SiLU(), nn.Linear(h, h))
        if spec.mouse:
            self.mouse_mlp = nn.Sequential(
                nn.Linear(24 + d, w), nn.GELU(approximate="tanh"), nn.Linear(w, w), nn.LayerNorm(w)
            )
            self.t_qkv = nn.Linear(w, 3 * w, bias=False)
            self.img_attn_q_norm, self.img_attn_k_norm = RMSNorm(head), RMSNorm(head)
            self.proj_mouse = nn.Linear(w, d, bias=False)
        self.key_attn_q_norm, self.key_attn_k_norm = RMSNorm(head), RMSNorm(head)
        self.mouse_attn_q = nn.Linear(d, w, bias=False)
        self.keyboard_attn_kv = nn.Linear(h * 12, 2 * w, bias=False)
        self.proj_keyboard = nn.Linear(w, d, bias=False)

    def forward(self, x_BTM: Tensor, around: Surroundings, layer: int) -> tuple[Tensor, Tensor]:
        """Features with the mouse in them, and what the keyboard adds."""
        motion, keys = around.actions.mouse_BA2, self.keyboard_embed(around.actions.keyboard_BAK)
        if motion is not None:
            x_BTM = x_BTM + self._mouse(x_BTM, self._windows(motion), around.mouse_turn, around.window.mouse(layer))
        return x_BTM, self._keyboard(x_BTM, self._windows(keys), around.keyboard_turn, around.window.keyboard(layer))

    def _mouse(self, x_BTM: Tensor, motion_BFW: Tensor, turn: Turn, reach: Reach) -> Tensor:
        """Every token over time: for the attention tokens of a frame are heads."""
        motion = motion_BFW.repeat_interleave(x_BTM.shape[1] // self._frames, 1)
        q, k, v = self.t_qkv(self.mouse_mlp(torch.cat((x_BTM, motion), -1))).unflatten(-1, (3, *self._heads)).unbind(2)
        q, k = qk_norm_rope(q, k, v, turn, ACTION_NORMS, reach.staged)
        q, k, v = (t.reshape(len(t), self._frames, -1, self._heads[1]) for t in (q, k, v))
        y: Tensor = self.proj_mouse(chunk_attention(q, reach.past, (k, v)).reshape(*x_BTM.shape[:2], -1))
        return y

    def _keyboard(self, x_BTM: Tensor, keys_BFW: Tensor, turn: Turn, reach: Reach) -> Tensor:
        """Every token asks the same keys, one a frame; queries stand token by token, each over its frames."""
        rows = len(x_BTM)
        k, v = self.keyboard_attn_kv(keys_BFW).unflatten(-1, (2, *self._heads)).unbind(2)
        q = self.mouse_attn_q(x_BTM).view(rows, self._frames, -1, *self._heads).transpose(1, 2)
        q, k = qk_norm_rope(q.flatten(1, 2), k, v, turn, ACTION_NORMS, reach.staged)
        y = chunk_attention(q, reach.past, (k, v)).reshape(rows, -1, self._frames, math.prod(self._heads))
        added: Tensor = self.proj_keyboard(y.transpose(1, 2).flatten(1, 2))
        return added

    def _windows(self, values_BAW: Tensor) -> Tensor:
        """[B, F, 12 W]: of latent frame i the 12 action frames before its last one."""
        return torch.stack([values_BAW[:, 4 * i : 4 * i + 12].flatten(1) for i in range(self._frames)], 1)


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

    def forward(self, x_BTM: Tensor, e_B6M: Tensor, image: KV, around: Surroundings, layer: int) -> Tensor:
        e = (self.modulation + e_B6M).chunk(6, 1)
        y = self.self_attn.over_chunk(norm_modulate(x_BTM, e[1], e[0]), around.turn, around.window.main(layer))
        weight, bias = (learned.expand(len(x_BTM), 1, -1) for learned in (self.norm3.weight, self.norm3.bias))
        x, y = gate_norm_modulate(x_BTM, y, e[2], weight, bias, learned=True)
        y = self.cross_attn.over_image(y, image)
        if self.action_model is not None:
            x, y = self.action_model(x + y, around, layer)
        x, y = gate_norm_modulate(x, y, None, e[4], e[3])
        return gate_residual(x, self.ffn(y), e[5])


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
        self._turns = lru_cache(maxsize=64)(_turns)

    def invariant(self) -> None:
        """Take the form whose rows share a pass and keep their bits."""
        make_invariant(self)

    def image_kv(self, images: Sequence[Tensor]) -> list[KV]:
        """Keys and values of the opening pictures' tokens [I, image width], one of each row, for every layer."""
        dtype = self.patch_embedding.weight.dtype
        tokens = torch.cat([self.img_emb.proj(image.to(dtype)[None]) for image in images])
        return [block.cross_attn.keys_and_values(tokens) for block in self._layers()]

    def _layers(self) -> list[Block]:
        return [block for block in self.blocks if isinstance(block, Block)]

    def forward(
        self,
        x_BCFHW: Tensor,
        sigmas: Sequence[float],
        image: list[KV],
        actions: Actions,
        first_frames: Sequence[int],
        window: Window,
        probe: Probe | None = None,
    ) -> Tensor:
        """Flow [B, 16, F, H, W] in float32 of latents, mask and picture [B, 36, F, H, W]."""
        spec, device, dtype = self.spec, x_BCFHW.device, self.patch_embedding.weight.dtype
        x = torch.cat([self.patch_embedding(row[None].to(dtype)) for row in x_BCFHW])  # a convolution feels its batch
        x = x.flatten(2).transpose(1, 2).contiguous()
        waves_B1F = torch.stack([_sinusoid(sigma * 1000, spec.freq_dim, device).to(x.dtype)[None] for sigma in sigmas])
        e_B1M = self.time_embedding(waves_B1F)
        e_B6M = self.time_projection(e_B1M).unflatten(-1, (6, -1))[:, 0]
        around = Surroundings(actions, window, *self._turned(first_frames, device))
        for layer, block in enumerate(self._layers()):
            x = block(x, e_B6M, image[layer], around, layer)
            if probe is not None:
                probe(f"block {layer}", x[0])
        shift, scale = (self.head.modulation + e_B1M).chunk(2, 1)
        y: Tensor = self.head.head(norm_modulate(x, scale, shift)).float()
        grid = (len(y), spec.chunk, spec.rows // 2, spec.columns // 2, 2, 2, spec.channels)
        y = y.view(grid).permute(0, 6, 1, 2, 4, 3, 5)
        return y.reshape(len(y), spec.channels, spec.chunk, spec.rows, spec.columns)

    def _turned(self, first_frames: Sequence[int], device: torch.device) -> tuple[Turn, Turn, Turn]:
        """As `_turns` has them, of every row."""
        rows = [self._turns(self.spec, first, device) for first in first_frames]
        own, mouse, keyboard = (
            (torch.cat([turns[kind][0] for turns in rows]), torch.cat([turns[kind][1] for turns in rows]))
            for kind in range(3)
        )
        return own, mouse, keyboard


def _sinusoid(timestep: float, width: int, device: torch.device) -> Tensor:
    waves = 10000.0 ** (-torch.arange(width // 2, dtype=torch.float64, device=device) / (width // 2))
    return torch.cat(((timestep * waves).cos(), (timestep * waves).sin())).float()


def _turns(spec: MatrixGameSpec, first_frame: int, device: torch.device) -> tuple[Turn, Turn, Turn]:
    """As `Surroundings` has them. Actions are turned in the first `action_time_width` of a head's values; the rest
    stand still.
    """
    turn = rotation(spec.dim // spec.heads, spec.rows // 2, spec.columns // 2, first_frame, spec.chunk, device)
    pairs, head = spec.action_time_width // 2, spec.action_width // spec.action_heads
    frequencies = ROPE_BASE ** (-torch.arange(pairs, dtype=torch.float64, device=device) / pairs)
    times = torch.arange(first_frame, first_frame + spec.chunk, dtype=torch.float64, device=device)
    angles_FP = torch.zeros(spec.chunk, head // 2, dtype=torch.float64, device=device)
    angles_FP[:, :pairs] = times[:, None] * frequencies
    mouse, keyboard = angles_FP.repeat_interleave(spec.tokens, 0)[None], angles_FP.repeat(spec.tokens, 1)[None]
    own = turn.cos_T1P[None, :, 0], turn.sin_T1P[None, :, 0]
    return own, (mouse.cos().float(), mouse.sin().float()), (keyboard.cos().float(), keyboard.sin().float())
