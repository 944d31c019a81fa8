"""A transformer of Waypoint's public shape over one latent frame; what is not public is chosen plainly and said here.

    local layer    its own frame and the `local` frames before it
    global layer   its own frame and every `dilation`th frame of the last `span`

Chosen, not known: a feed forward of four widths with SiLU, RMS norms without weights, one modulation per layer from the
noise level, controls and prompt added every third layer. Writes nothing: fresh keys and values come back.
Legend: T tokens of a frame, M width, N heads, G kv heads, D head width, S past tokens, P prompt tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .card import BUTTONS, WaypointSpec

KV = tuple[Tensor, Tensor]  # rotated keys and values [S, G, D]


@dataclass(frozen=True, slots=True)
class Steering:
    control_C: Tensor
    prompt_PW: Tensor


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


class WaypointTransformer(nn.Module):
    """See the module docstring."""

    def __init__(self, spec: WaypointSpec) -> None:
        super().__init__()
        self.spec = spec
        self.read = nn.Linear(spec.channels, spec.width)
        self.noise = nn.Sequential(nn.Linear(32, spec.width), nn.SiLU())
        self.layers = nn.ModuleList(Layer(spec, layer % spec.fuse_every == 0) for layer in range(spec.layers))
        self.write = nn.Linear(spec.width, spec.channels)

    def forward(
        self, x_TC: Tensor, sigma: float, frame: int, steering: Steering, past: Sequence[KV | None]
    ) -> tuple[Tensor, list[KV]]:
        """Velocity [T, C] and fresh keys and values of every layer."""
        spec = self.spec
        h = self.read(x_TC)
        e = self.noise(_waves(sigma, x_TC.device).to(h.dtype))
        angles = rotary_angles(spec, frame, x_TC.device)
        fresh: list[KV] = []
        layers = [layer for layer in self.layers if isinstance(layer, Layer)]
        for layer, before in zip(layers, past, strict=True):
            m = layer.modulation(e).chunk(6)
            y = _unit(h) * (1 + m[1]) + m[0]
            heads = (-1, spec.head_width)
            q = rotate(_unit(layer.q(y).unflatten(-1, heads)), angles)
            k, v = rotate(_unit(layer.k(y).unflatten(-1, heads)), angles), layer.v(y).unflatten(-1, heads)
            seen = (k, v) if before is None else (torch.cat((before[0], k)), torch.cat((before[1], v)))
            h = h + m[2] * layer.o(_grouped(q, *seen))
            if layer.control is not None and layer.ask is not None and layer.answer is not None:
                h = h + layer.control(steering.control_C)
                shares = (layer.ask(_unit(h)) @ steering.prompt_PW.T / spec.prompt_width**0.5).softmax(-1)
                h = h + layer.answer(shares @ steering.prompt_PW)
            h = h + m[5] * layer.down(F.silu(layer.up(_unit(h) * (1 + m[4]) + m[3])))
            fresh.append((k, v))
        return self.write(_unit(h)).float(), fresh


def rotary_angles(spec: WaypointSpec, frame: int, device: torch.device) -> Tensor:
    """[T, 1, D / 2]: half of the pairs turn with time, a quarter each with column and row."""
    pairs = spec.head_width // 2
    time, side = pairs - 2 * (pairs // 4), pairs // 4
    y, x = torch.meshgrid(torch.arange(spec.rows), torch.arange(spec.columns), indexing="ij")
    places = (torch.full((spec.tokens,), frame), x.reshape(-1), y.reshape(-1))
    parts = [
        place.double()[:, None] * 10000.0 ** (-torch.arange(n, dtype=torch.float64) / max(n, 1))
        for place, n in zip(places, (time, side, side), strict=True)
    ]
    return torch.cat(parts, 1)[:, None].to(device)


def rotate(x_TND: Tensor, angles: Tensor) -> Tensor:
    a, b = x_TND.float().chunk(2, -1)
    cos, sin = angles.cos().float(), angles.sin().float()
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).to(x_TND.dtype)


def _grouped(q_TND: Tensor, k_SGD: Tensor, v_SGD: Tensor) -> Tensor:
    """Every kv head serves N / G neighbouring heads."""
    q, k, v = (t.transpose(0, 1)[None] for t in (q_TND, k_SGD, v_SGD))
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)[0].transpose(0, 1).flatten(1)


def _unit(x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], eps=1e-6)


def _waves(sigma: float, device: torch.device) -> Tensor:
    phase = 1000 * sigma * 10000.0 ** (-torch.arange(16, dtype=torch.float64, device=device) / 16)
    return torch.cat((phase.cos(), phase.sin())).float()
