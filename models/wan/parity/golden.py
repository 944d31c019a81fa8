"""Wan's rollout written as one straight line over whole sequences, in float64: no cache, no slab, no code of the rest.

A world is a list of segments: chunks of latents, each with its noise level, prompt, frame numbers, and the list of
earlier segments it may see. One masked forward over all of them at once gives every velocity; keys and values are never
kept. Weights come as a plain table under the published names. Everything is float64, so what is left is our rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ....kernels.philox import NoiseKey, gaussian


@dataclass(frozen=True, slots=True)
class Segment:
    """Latents [C, F, H, W] at one noise level. `sees`: indices of earlier segments, in the order of their keys.

    `starts`: the number of its first frame. With `restart` keys count from the start of what is seen instead.
    """

    x: Tensor
    sigma: float
    text: Tensor
    starts: int
    sees: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Net:
    """The published table, and the two sizes that are not in it."""

    table: Mapping[str, Tensor]
    heads: int
    restart: bool

    def linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.table[name + ".weight"].T + self.table[name + ".bias"]


def velocity(net: Net, segments: Sequence[Segment]) -> Tensor:
    """The velocity of the last segment, from one masked forward over all of them."""
    tokens = [_patches(net, segment.x) for segment in segments]
    x = torch.cat(tokens)
    spans, at = [], 0
    for part in tokens:
        spans.append(slice(at, at + len(part)))
        at += len(part)
    times = [_time(net, segment.sigma) for segment in segments]
    words = {id(s.text): net.linear("text_embedding.0", s.text.double()) for s in segments}
    texts = {key: net.linear("text_embedding.2", _gelu(text)) for key, text in words.items()}
    layers = 1 + max(int(name.split(".")[1]) for name in net.table if name.startswith("blocks."))
    for layer in range(layers):
        x = _block(net, f"blocks.{layer}", x, segments, spans, [big for _, big in times], texts)
    last, span = segments[-1], spans[-1]
    shift, scale = (net.table["head.modulation"][0] + times[-1][0]).unbind(0)
    y = net.linear("head.head", _normal(x[span]) * (1 + scale) + shift)
    channels, frames, rows, columns = last.x.shape
    y = y.reshape(frames, rows // 2, columns // 2, 1, 2, 2, channels)
    return torch.einsum("fhwpqrc->cfphqwr", y).reshape(channels, frames, rows, columns)


def _block(
    net: Net,
    name: str,
    x: Tensor,
    segments: Sequence[Segment],
    spans: Sequence[slice],
    times: Sequence[Tensor],
    texts: Mapping[int, Tensor],
) -> Tensor:
    table, out = net.table, x.clone()
    told_k = {
        key: _rms(net.linear(f"{name}.cross_attn.k", text), table[f"{name}.cross_attn.norm_k.weight"])
        for key, text in texts.items()
    }
    told_v = {key: net.linear(f"{name}.cross_attn.v", text) for key, text in texts.items()}
    e = [table[f"{name}.modulation"][0] + time for time in times]
    y = torch.cat([_normal(x[span]) * (1 + e[i][1]) + e[i][0] for i, span in enumerate(spans)])
    q = _rms(net.linear(f"{name}.self_attn.q", y), table[f"{name}.self_attn.norm_q.weight"])
    k = _rms(net.linear(f"{name}.self_attn.k", y), table[f"{name}.self_attn.norm_k.weight"])
    v = net.linear(f"{name}.self_attn.v", y)
    for i, (segment, span) in enumerate(zip(segments, spans, strict=True)):
        window = (*segment.sees, i)
        first, places = 0, {}
        for j in window:
            places[j] = first if net.restart else segments[j].starts
            first += segments[j].x.shape[1]
        keys = torch.cat([_turned(k[spans[j]], segments[j].x, places[j], net.heads) for j in window])
        values = torch.cat([v[spans[j]] for j in window])
        seen = _softmax(_turned(q[span], segment.x, places[i], net.heads), keys, values, net.heads)
        h = x[span] + net.linear(f"{name}.self_attn.o", seen) * e[i][2]
        asked = _normal(h) * table[f"{name}.norm3.weight"] + table[f"{name}.norm3.bias"]
        cq = _rms(net.linear(f"{name}.cross_attn.q", asked), table[f"{name}.cross_attn.norm_q.weight"])
        told = _softmax(cq, told_k[id(segment.text)], told_v[id(segment.text)], net.heads)
        h = h + net.linear(f"{name}.cross_attn.o", told)
        z = _normal(h) * (1 + e[i][4]) + e[i][3]
        out[span] = h + net.linear(f"{name}.ffn.2", _gelu(net.linear(f"{name}.ffn.0", z))) * e[i][5]
    return out


def _patches(net: Net, x: Tensor) -> Tensor:
    channels, frames, rows, columns = x.shape
    blocks = x.double().reshape(channels, frames, rows // 2, 2, columns // 2, 2).permute(1, 2, 4, 0, 3, 5)
    weight = net.table["patch_embedding.weight"].flatten(1)
    return blocks.reshape(-1, channels * 4) @ weight.T + net.table["patch_embedding.bias"]


def _time(net: Net, sigma: float) -> tuple[Tensor, Tensor]:
    half = net.table["time_embedding.0.weight"].shape[1] // 2
    phase = 1000 * sigma * 10000.0 ** (-np.arange(half) / half)
    waves = torch.from_numpy(np.concatenate([np.cos(phase), np.sin(phase)]))
    small = net.linear("time_embedding.2", _silu(net.linear("time_embedding.0", waves)))
    return small, net.linear("time_projection.1", _silu(small)).reshape(6, -1)


def _turned(x: Tensor, latents: Tensor, starts: int, heads: int) -> Tensor:
    """Complex rotation of adjacent pairs by frame, row and column."""
    _, frames, rows, columns = latents.shape
    pairs = x.shape[1] // heads // 2
    third = pairs // 3
    places = np.indices((frames, rows // 2, columns // 2)).reshape(3, -1) + np.array([[starts], [0], [0]])
    angles = np.concatenate(
        [
            np.outer(place, 10000.0 ** (-np.arange(n) / n))
            for place, n in zip(places, (pairs - 2 * third, third, third), strict=True)
        ],
        axis=1,
    )
    turns = torch.from_numpy(np.exp(1j * angles))[:, None]
    pairs_THP = torch.view_as_complex(x.reshape(-1, heads, pairs, 2).contiguous())
    return torch.view_as_real(pairs_THP * turns).reshape(x.shape)


def _softmax(q: Tensor, k: Tensor, v: Tensor, heads: int) -> Tensor:
    q, k, v = (t.reshape(len(t), heads, -1).transpose(0, 1) for t in (q, k, v))
    scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
    mixed: Tensor = (scores.softmax(-1) @ v).transpose(0, 1)
    return mixed.reshape(q.shape[1], -1)


def _normal(x: Tensor) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-6).sqrt()


def _rms(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight


def _gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _silu(x: Tensor) -> Tensor:
    return x / (1 + torch.exp(-x))


# ---- the rollout ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class World:
    """Chunks so far. `past`: indices of the segments whose keys the next chunk would find committed, oldest first."""

    net: Net
    seed: int
    shape: tuple[int, int, int, int]
    sigmas: tuple[float, ...]
    past_chunks: int
    sink: int
    segments: list[Segment] = field(default_factory=list)
    past: list[int] = field(default_factory=list)
    latents: list[Tensor] = field(default_factory=list)

    def chunk(self, text: Tensor) -> Tensor:
        """Denoise one more chunk under this prompt and commit it."""
        number, frames = len(self.latents), self.shape[1]
        x = noise(self.seed, number, 0, self.shape)
        for step, sigma in enumerate(self.sigmas):
            now = Segment(x, sigma, text, number * frames, tuple(self.past))
            clean = x - sigma * velocity(self.net, [*self.segments, now])
            if step + 1 < len(self.sigmas):
                level = self.sigmas[step + 1]
                x = (1 - level) * clean + level * noise(self.seed, number, step + 1, self.shape)
        self.latents.append(clean)
        self.segments.append(Segment(clean, 0.0, text, number * frames, tuple(self.past)))
        self._keep(len(self.segments) - 1)
        return clean

    def recache(self, text: Tensor, chunks: int) -> None:
        """The last `chunks` chunks but the sink anew under this prompt, each seeing the sink and those before it."""
        done, frames = len(self.latents), self.shape[1]
        anew: list[int] = []
        for number in range(max(self.sink, done - chunks), done):
            recent = anew[max(0, len(anew) - (self.past_chunks - self.sink)) :]
            sees = (*self.past[: self.sink], *recent)
            self.segments.append(Segment(self.latents[number], 0.0, text, number * frames, sees))
            anew.append(len(self.segments) - 1)
        self.past = self.past[: self.sink]
        for segment in anew:
            self._keep(segment)

    def _keep(self, segment: int) -> None:
        self.past.append(segment)
        if len(self.past) > self.past_chunks:
            del self.past[self.sink]


def noise(seed: int, chunk: int, step: int, shape: tuple[int, ...]) -> Tensor:
    return torch.from_numpy(gaussian(NoiseKey(seed, 0, chunk, step), shape)).double()


# ---- the tiny decoder -----------------------------------------------------------------------------------------------


def tiny_decoder(table: Mapping[str, Tensor], latent_CFHW: Tensor) -> Tensor:
    """Pictures [3, T, H, W] in about [-1, 1]: every layer over the whole sequence, the published layer numbers."""
    conv = torch.nn.functional.conv2d
    x = 3 * torch.tanh(latent_CFHW.transpose(0, 1) / 3)
    x = conv(x, table["decoder.1.weight"], table["decoder.1.bias"], padding=1).clamp_min(0)
    for first in (3, 9, 15):
        for block in (first, first + 1, first + 2):
            name = f"decoder.{block}.conv"
            y = torch.cat((x, torch.cat((torch.zeros_like(x[:1]), x[:-1]))), 1)
            for i in (0, 2, 4):
                y = conv(y, table[f"{name}.{i}.weight"], table[f"{name}.{i}.bias"], padding=1)
                y = y.clamp_min(0) if i < 4 else y
            x = (x + y).clamp_min(0)
        x = x.repeat_interleave(2, 2).repeat_interleave(2, 3)
        grown = conv(x, table[f"decoder.{first + 4}.conv.weight"])
        stride = grown.shape[1] // x.shape[1]
        x = torch.stack([part for frame in grown for part in frame.chunk(stride)])
        x = conv(x, table[f"decoder.{first + 5}.weight"], padding=1)
    x = conv(x.clamp_min(0), table["decoder.22.weight"], table["decoder.22.bias"], padding=1)
    return (x[3:] * 2 - 1).transpose(0, 1)
