"""A transformer of Waypoint's public shape over one latent frame; what is not public is chosen plainly and said here.

    local layer    its own frame and the `local` frames before it
    global layer   its own frame and every `dilation`th frame of the last `span`

Chosen, not known: a feed forward of four widths with SiLU, RMS norms without weights, one modulation per layer from the
noise level, controls and prompt added every third layer. What is seen of the past, and where fresh keys and values go,
the pass's window says. A head's pair of rotary values is (i, i + D / 2).
Rows of several sessions share a pass; in its invariant form (`invariant`) each has the bits it has alone.

Legend: B rows, T tokens of a frame, C channels, M width, D head width, P prompt tokens, W their width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...kernels.chunk_attention import chunk_attention
from ...kernels.norm_modulate import Norm, gate_norm_modulate, gate_residual, norm_modulate
from ...kernels.qk_norm_rope import Norms, qk_norm_rope
from ...kernels.upload import upload
from ..shared.invariant import make_invariant
from ..shared.reach import Reach
from .slab import Window
from .spec import BUTTONS, WaypointSpec

NORMS = Norms(each_head=True)
Turn = tuple[Tensor, Tensor]  # cos and sin [B, T, D / 2]
Modulation = tuple[Tensor, ...]  # shift, scale, gate of attention, then of the feed forward, [B, 1, M] each


@dataclass(frozen=True, slots=True)
class Steering:
    control_BC: Tensor
    prompt_BPW: Tensor


class Layer(nn.Module):
    def __init__(self, spec: WaypointSpec, fuses: bool) -> None:
        super().__init__()
        m, kv = spec.width, spec.kv_heads * spec.head_width
        self.q, self.k, self.v, self.o = nn.Linear(m, m), nn.Linear(m, kv), nn.Linear(m, kv), nn.Linear(m, m)
        self.up, self.down = nn.Linear(m, 4 * m), nn.Linear(4 * m, m)
        self.modulation = nn.Linear(m, 6 * m)
        self.control = nn.Sequential(nn.Linear(BUTTONS + 3, m), nn.SiLU(), nn.Linear(m, m)) if fuses else None
        self.ask = nn.Linear(m, spec.prompt_width) if fuses else None
        self.answer = nn.Linear(spec.prompt_width, m) if fuses else None
        self.act = nn.SiLU()
        self._width = spec.head_width

    def forward(self, h_BTM: Tensor, m: Modulation, steering: Steering, turn: Turn, reach: Reach) -> Tensor:
        y = self._over_frames(norm_modulate(h_BTM, m[1], m[0], norm=Norm.RMS), turn, reach)
        if self.control is not None and self.ask is not None and self.answer is not None:
            h = gate_residual(h_BTM, y, m[2]) + self.control(steering.control_BC[:, None])
            asked_BTW = self.ask(unit(h))
            told_BTW = torch.stack([_told(*row) for row in zip(asked_BTW, steering.prompt_BPW, strict=True)])
            h, y = gate_norm_modulate(h, self.answer(told_BTW), None, m[4], m[3], norm=Norm.RMS)
        else:
            h, y = gate_norm_modulate(h_BTM, y, m[2], m[4], m[3], norm=Norm.RMS)
        return gate_residual(h, self.down(self.act(self.up(y))), m[5])

    def _over_frames(self, y_BTM: Tensor, turn: Turn, reach: Reach) -> Tensor:
        """Of a frame over itself and its past; every kv head serves neighbouring heads."""
        heads = (len(y_BTM), y_BTM.shape[1], -1, self._width)
        q, k, v = (project(y_BTM).view(heads) for project in (self.q, self.k, self.v))
        q, k = qk_norm_rope(q, k, v, turn, NORMS, reach.staged, halves=True)
        y: Tensor = self.o(chunk_attention(q, reach.past, (k, v)).flatten(2))
        return y


class WaypointTransformer(nn.Module):
    """See the module docstring."""

    def __init__(self, spec: WaypointSpec) -> None:
        super().__init__()
        self.spec = spec
        self.read = nn.Linear(spec.channels, spec.width)
        self.noise = nn.Sequential(nn.Linear(32, spec.width), nn.SiLU())
        self.layers = nn.ModuleList(Layer(spec, layer % spec.fuse_every == 0) for layer in range(spec.layers))
        self.write = nn.Linear(spec.width, spec.channels)
        self._turn = lru_cache(maxsize=64)(_turn)

    def invariant(self) -> None:
        """Take the form whose rows share a pass and keep their bits."""
        make_invariant(self)

    def modulations(self, sigma: float) -> list[Tensor]:
        """Of every layer at one noise level, whatever the frame [1, 1, 6 M]."""
        e_11M = self.noise(_waves(sigma, self.read.weight.device).to(self.read.weight.dtype)[None, None])
        return [layer.modulation(e_11M) for layer in self.layers if isinstance(layer, Layer)]

    def forward(
        self,
        x_BTC: Tensor,
        modulations: Sequence[Sequence[Tensor]],
        frames: Sequence[int],
        steering: Steering,
        window: Window,
    ) -> Tensor:
        """Velocity [B, T, C] in float32; `modulations` of each row."""
        h = self.read(x_BTC)
        turns = [self._turn(self.spec, frame, x_BTC.device) for frame in frames]
        turn = torch.cat([cos for cos, _ in turns]), torch.cat([sin for _, sin in turns])
        for at, layer in enumerate(self.layers):
            modulation = torch.cat([row[at] for row in modulations]).chunk(6, -1)
            h = layer(h, modulation, steering, turn, window.reach(at))
        velocity: Tensor = self.write(unit(h)).float()
        return velocity


def _told(asked_TW: Tensor, prompt_PW: Tensor) -> Tensor:
    """What the prompt tells each token of one row."""
    shares_TP = (asked_TW @ prompt_PW.T / prompt_PW.shape[1] ** 0.5).softmax(-1)
    told_TW: Tensor = shares_TP @ prompt_PW
    return told_TW


def _turn(spec: WaypointSpec, frame: int, device: torch.device) -> Turn:
    """Half of the pairs turn with time, a quarter each with column and row."""
    pairs = spec.head_width // 2
    time, side = pairs - 2 * (pairs // 4), pairs // 4
    y, x = torch.meshgrid(torch.arange(spec.rows), torch.arange(spec.columns), indexing="ij")
    places = (torch.full((spec.tokens,), frame), x.reshape(-1), y.reshape(-1))
    parts = [
        place.double()[:, None] * 10000.0 ** (-torch.arange(n, dtype=torch.float64) / max(n, 1))
        for place, n in zip(places, (time, side, side), strict=True)
    ]
    angles = torch.cat(parts, 1)[None]
    return upload(angles.cos().float(), device), upload(angles.sin().float(), device)


def unit(x: Tensor) -> Tensor:
    """Of size one, with neither scale nor shift: torch does that in one pass too. Row by row, so that none is felt."""
    return torch.stack([F.rms_norm(row, row.shape[-1:], eps=1e-6) for row in x])


def _waves(sigma: float, device: torch.device) -> Tensor:
    phase = 1000 * sigma * 10000.0 ** (-torch.arange(16, dtype=torch.float64, device=device) / 16)
    return torch.cat((phase.cos(), phase.sin())).float()
