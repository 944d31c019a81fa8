"""The Matrix-Game rollout as one straight line over a table of weights: no cache, no loop, no code of the family.

Every pass goes over the whole world so far, clean chunks at level 0 and the newest at its own, under a mask that says
which frame sees which. Tensors come in by their published names; pictures go through the shared autoencoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, linear, silu

from ...kernels.philox import NoiseKey, gaussian

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the table does not say: heads, the window, the time part of action heads, the grid of a latent frame."""

    heads: int
    action_heads: int
    local: int
    time_width: int
    rows: int
    columns: int


def rollout(
    w: Weights, sizes: Sizes, condition: Tensor, image: Tensor, keys: Tensor, mouse: Tensor | None, seed: int
) -> list[Tensor]:
    """Clean latents [16, 3, H, W] of every chunk. condition [16, K, H, W]; one action a picture frame, from frame 0."""
    chunks = (len(keys) + 3) // 12
    levels = [5 * t / (1 + 4 * t) for t in (1.0, 0.666, 0.333)]
    made: list[Tensor] = []
    for chunk in range(chunks):
        shape = (16, 3, sizes.rows, sizes.columns)
        x = torch.from_numpy(gaussian(NoiseKey(seed, 0, chunk, 0), shape))
        for step, level in enumerate(levels):
            flow = whole(w, sizes, torch.cat([*made, x], 1), chunk, level, condition, image, keys, mouse)[-1]
            clean = (x.double() - level * flow.double()).float()
            x = clean
            if step < 2:
                fresh = torch.from_numpy(gaussian(NoiseKey(seed, 0, chunk, step + 1), shape))
                x = (1 - levels[step + 1]) * clean + levels[step + 1] * fresh
        made.append(x)
    return made


def whole(
    w: Weights, sizes: Sizes, x: Tensor, newest: int, level: float, condition: Tensor, image: Tensor, keys: Tensor,
    mouse: Tensor | None,
) -> list[Tensor]:  # fmt: skip
    """Probes of one pass over chunks 0..newest: features of the newest chunk after each block, then its flow."""
    frames, d = x.shape[1], w["patch_embedding.weight"].shape[0]
    known = condition[:, [min(f, condition.shape[1] - 1) for f in range(frames)]]
    mask = torch.zeros(4, frames, sizes.rows, sizes.columns)
    mask[:, 0] = 1
    stack = torch.cat((x, mask, known))
    h = torch.nn.functional.conv3d(stack[None], w["patch_embedding.weight"], w["patch_embedding.bias"], (1, 2, 2))[0]
    per = sizes.rows * sizes.columns // 4
    h = h.permute(1, 2, 3, 0).reshape(frames, per, d)
    times = torch.tensor([0.0] * (frames - 3) + [level * 1000] * 3, dtype=torch.float64)
    half = w["time_embedding.0.weight"].shape[1] // 2
    phase = times[:, None] * 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    e = _lin(w, "time_embedding.2", silu(_lin(w, "time_embedding.0", torch.cat((phase.cos(), phase.sin()), 1).float())))
    e6 = _lin(w, "time_projection.1", silu(e)).view(frames, 6, d)
    tokens = layer_norm(image, image.shape[-1:], w["img_emb.proj.0.weight"], w["img_emb.proj.0.bias"])
    tokens = _lin(w, "img_emb.proj.3", gelu(_lin(w, "img_emb.proj.1", tokens)))
    tokens = layer_norm(tokens, (d,), w["img_emb.proj.4.weight"], w["img_emb.proj.4.bias"])
    ends = (torch.arange(frames) // 3 + 1) * 3
    sees = (torch.arange(frames)[None] < ends[:, None]) & (torch.arange(frames)[None] >= ends[:, None] - sizes.local)
    probes = []
    layer = 0
    while f"blocks.{layer}.modulation" in w:
        b = f"blocks.{layer}."
        m = (w[b + "modulation"][0] + e6)[:, :, None].unbind(1)
        y = layer_norm(h, (d,), eps=1e-6) * (1 + m[1]) + m[0]
        h = h + _self_attention(w, b + "self_attn.", y, sees, sizes) * m[2]
        y = layer_norm(h, (d,), w[b + "norm3.weight"], w[b + "norm3.bias"], 1e-6)
        h = h + _image_attention(w, b + "cross_attn.", y, tokens, sizes.heads)
        if b + "action_model.proj_keyboard.weight" in w:
            if mouse is not None:
                h = h + _mouse(w, b + "action_model.", h, mouse, sees, sizes)
            h = h + _keyboard(w, b + "action_model.", h, keys, sees, sizes)
        y = layer_norm(h, (d,), eps=1e-6) * (1 + m[4]) + m[3]
        h = h + _lin(w, b + "ffn.2", gelu(_lin(w, b + "ffn.0", y), approximate="tanh")) * m[5]
        probes.append(h[-3:].reshape(3 * per, d))
        layer += 1
    shift, scale = (w["head.modulation"][0] + e[:, None])[:, :, None].unbind(1)
    y = _lin(w, "head.head", layer_norm(h, (d,), eps=1e-6) * (1 + scale) + shift)[-3:]
    y = y.view(3, sizes.rows // 2, sizes.columns // 2, 2, 2, 16)
    return [*probes, torch.einsum("fhwpqc->cfhpwq", y).reshape(16, 3, sizes.rows, sizes.columns)]


def _self_attention(w: Weights, b: str, y: Tensor, sees: Tensor, sizes: Sizes) -> Tensor:
    q, k, v = (_heads(t, sizes.heads) for t in (_rms(w, b, "q", y), _rms(w, b, "k", y), _lin(w, b + "v", y)))
    frames, per, _, width = q.shape
    third = width // 6
    angles = torch.zeros(frames, sizes.rows // 2, sizes.columns // 2, width // 2, dtype=torch.float64)
    first = width // 2 - 2 * third
    for axis, (start, count) in enumerate(((0, first), (first, third), (first + third, third))):
        place = torch.arange(angles.shape[axis], dtype=torch.float64)
        turn = torch.outer(place, 10000.0 ** (-torch.arange(count, dtype=torch.float64) / count))
        angles[..., start : start + count] = turn.view([-1 if a == axis else 1 for a in range(3)] + [count])
    angles = angles.view(frames, per, 1, width // 2)
    q, k = _turned(q, angles), _turned(k, angles)
    scores = torch.einsum("fpnd,gsnd->nfpgs", q, k) / width**0.5
    scores = scores.masked_fill(~sees[None, :, None, :, None], float("-inf"))
    shares = scores.flatten(3).softmax(-1).view_as(scores)
    return _lin(w, b + "o", torch.einsum("nfpgs,gsnd->fpnd", shares, v).flatten(2))


def _image_attention(w: Weights, b: str, y: Tensor, tokens: Tensor, heads: int) -> Tensor:
    q, k, v = _rms(w, b, "q", y), _rms(w, b, "k", tokens), _lin(w, b + "v", tokens)
    q, k, v = (_heads(t, heads) for t in (q, k, v))
    shares = (torch.einsum("fpnd,snd->fpns", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return _lin(w, b + "o", torch.einsum("fpns,snd->fpnd", shares, v).flatten(2))


def _mouse(w: Weights, b: str, h: Tensor, mouse: Tensor, sees: Tensor, sizes: Sizes) -> Tensor:
    motion = _windows(mouse, len(h))[:, None].expand(-1, h.shape[1], -1)
    y = _lin(w, b + "mouse_mlp.0", torch.cat((h, motion), -1))
    y = _lin(w, b + "mouse_mlp.2", gelu(y, approximate="tanh"))
    y = layer_norm(y, y.shape[-1:], w[b + "mouse_mlp.3.weight"], w[b + "mouse_mlp.3.bias"])
    q, k, v = (_heads(t, sizes.action_heads) for t in linear(y, w[b + "t_qkv.weight"]).chunk(3, -1))
    q, k = _turned(_unit(q), _time(q, sizes)), _turned(_unit(k), _time(k, sizes))
    scores = torch.einsum("fpnd,gpnd->pnfg", q, k) / q.shape[-1] ** 0.5
    shares = scores.masked_fill(~sees, float("-inf")).softmax(-1)
    return linear(torch.einsum("pnfg,gpnd->fpnd", shares, v).flatten(2), w[b + "proj_mouse.weight"])


def _keyboard(w: Weights, b: str, h: Tensor, keys: Tensor, sees: Tensor, sizes: Sizes) -> Tensor:
    y = _lin(w, b + "keyboard_embed.2", silu(_lin(w, b + "keyboard_embed.0", keys)))
    k, v = linear(_windows(y, len(h)), w[b + "keyboard_attn_kv.weight"]).chunk(2, -1)
    q = linear(h, w[b + "mouse_attn_q.weight"])
    q, k, v = (_heads(t, sizes.action_heads) for t in (q, k[:, None], v[:, None]))
    q, k = _turned(_unit(q), _time(q, sizes)), _turned(_unit(k), _time(k, sizes))
    scores = torch.einsum("fpnd,gnd->pnfg", q, k[:, 0]) / q.shape[-1] ** 0.5
    shares = scores.masked_fill(~sees, float("-inf")).softmax(-1)
    return linear(torch.einsum("pnfg,gnd->fpnd", shares, v[:, 0]).flatten(2), w[b + "proj_keyboard.weight"])


def _windows(values: Tensor, frames: int) -> Tensor:
    """Latent frame t sees picture frames 4t - 12 .. 4t - 1; before the first frame the first action stands."""
    rows = [[max(4 * t - 12 + i, 0) for i in range(12)] for t in range(frames)]
    return torch.stack([values[row].flatten() for row in rows])


def _time(x: Tensor, sizes: Sizes) -> Tensor:
    pairs = sizes.time_width // 2
    angles = torch.zeros(len(x), 1, 1, x.shape[-1] // 2, dtype=torch.float64)
    angles[:, 0, 0, :pairs] = torch.outer(
        torch.arange(len(x), dtype=torch.float64), 256.0 ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
    )
    return angles


def _turned(x: Tensor, angles: Tensor) -> Tensor:
    z = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * torch.polar(torch.ones_like(angles), angles)).flatten(-2).float()


def _lin(w: Weights, name: str, x: Tensor) -> Tensor:
    return linear(x, w[name + ".weight"], w[name + ".bias"])


def _rms(w: Weights, b: str, which: str, x: Tensor) -> Tensor:
    return _unit(_lin(w, b + which, x)) * w[f"{b}norm_{which}.weight"]


def _unit(x: Tensor) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()


def _heads(x: Tensor, heads: int) -> Tensor:
    return x.reshape(*x.shape[:-1], heads, -1)


def held(actions: Sequence[Sequence[float]]) -> Tensor:
    """One action a chunk -> one a picture frame: 9 frames of the first, 12 of every other."""
    return torch.cat([torch.tensor([a] * (9 if n == 0 else 12)) for n, a in enumerate(actions)]).float()
