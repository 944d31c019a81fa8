"""One move of a flow-matching sampler, for rows at different noise levels, with the fresh noise made inside.

    renoise:  x0 = x - sigma v;   x' = (1 - sigma') x0 + sigma' z,  z from the row's key      (key given)
    Euler:    x' = x + (sigma' - sigma) v                                                     (key None)
Both are  x' = keep (x + drift v) + level z.  sigma' = 0 gives x0 either way. In float64, rounded once at the end; the
kernel is built without fused multiply-adds, so a CPU and a GPU agree to the bit.

Moved: x, v, x' once = 12 bytes a value; separate operations in float64 move about 80. FLOP: 5 a value, and the noise.
Sources: flow matching (2210.02747); re-noising between steps: Self-Forcing (2506.08009, algorithm 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from . import noise
from .backend import Backend, Build, Choice, choice, jit, runs_triton, tl
from .checks import expect, expect_dtype, expect_shape
from .philox import NoiseKey, blocks_of
from .upload import upload


@dataclass(frozen=True, slots=True)
class SamplerMove:
    """From noise level `sigma` to `next_sigma`, both in 0..1; `key` says where fresh noise comes from."""

    sigma: float
    next_sigma: float
    key: NoiseKey | None

    @property
    def drift(self) -> float:
        return self.next_sigma - self.sigma if self.key is None else -self.sigma

    @property
    def keep(self) -> float:
        return 1.0 if self.key is None else 1 - self.next_sigma

    @property
    def level(self) -> float:
        return 0.0 if self.key is None else self.next_sigma


def sampler_step(
    x: Tensor, velocity: Tensor, steps: Sequence[SamplerMove], *, backend: Backend | None = None
) -> Tensor:
    """The next x [rows, ...], float32 as `x` and `velocity` are; one step a row. Raises BadInput."""
    expect(x.ndim > 1 and x.shape[0] == len(steps), f"x is {list(x.shape)} for {len(steps)} steps")
    expect_shape("velocity", velocity, tuple(x.shape))
    for name, tensor in (("x", x), ("velocity", velocity)):
        expect_dtype(name, tensor.dtype, torch.float32)
        expect(tensor.device == x.device, f"{name} is on {tensor.device}, x on {x.device}")
    keys = [step.key for step in steps if step.key is not None]
    if keys:
        noise.check_keys(keys)
    if runs_triton(backend, choose(x), x.device):
        return _launched(x, velocity, steps)
    return torch.stack([reference(one, v, step) for one, v, step in zip(x, velocity, steps, strict=True)])


def choose(x: Tensor) -> Choice:
    return choice(x.device, [])


def reference(x: Tensor, velocity: Tensor, step: SamplerMove) -> Tensor:
    """One row."""
    moved = x.double() + step.drift * velocity.double()
    if step.key is None or step.level == 0:
        return moved.float()
    fresh = upload(noise.reference(step.key, x.numel()).reshape(x.shape), x.device)
    return (step.keep * moved + step.level * fresh.double()).float()


# ---- Triton ----


@jit
def _moved(
    at: tl.tensor, inside: tl.tensor, z: tl.tensor, x: tl.tensor, velocity: tl.tensor, step: tl.tensor
) -> tl.tensor:
    """One value of every lane; `step` points at drift, keep, level in float64."""
    a = tl.load(x + at, inside, 0.0).to(tl.float64)
    v = tl.load(velocity + at, inside, 0.0).to(tl.float64)
    moved = a + tl.load(step) * v
    return (tl.load(step + 1) * moved + tl.load(step + 2) * z.to(tl.float64)).to(tl.float32)


@jit
def _kernel(
    x: tl.tensor, velocity: tl.tensor, out: tl.tensor, keys: tl.tensor, steps: tl.tensor,
    count: tl.tensor, blocks: tl.tensor, NOISY: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """A program: BLOCK blocks of noise of one row, and the eight values that each of them becomes."""
    row = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    start = row.to(tl.int64) * count
    step = steps + row * 3
    if NOISY:
        words = noise.philox_words(at, keys + row * 4)
    for word in tl.static_range(4):
        first = tl.zeros((BLOCK,), tl.float32)
        second = tl.zeros((BLOCK,), tl.float32)
        if NOISY:
            first, second = noise.normals(words[word])
        place = at + 2 * word * blocks
        inside = (at < blocks) & (place < count)
        tl.store(out + start + place, _moved(start + place, inside, first, x, velocity, step), inside)
        place += blocks
        inside = (at < blocks) & (place < count)
        tl.store(out + start + place, _moved(start + place, inside, second, x, velocity, step), inside)


def _launched(x: Tensor, velocity: Tensor, steps: Sequence[SamplerMove]) -> Tensor:
    out = torch.empty(x.shape, device=x.device)
    count = x[0].numel()
    noisy = any(step.level != 0 for step in steps)
    numbers = torch.tensor([[step.drift, step.keep, step.level] for step in steps], dtype=torch.float64)
    keys = noise.key_words([step.key or NoiseKey(0, 0, 0, 0) for step in steps], x.device)
    blocks = blocks_of(count)
    block = noise.lanes(blocks)
    if out.numel():
        _kernel[(-(-blocks // block), len(steps))](
            x.contiguous(), velocity.contiguous(), out, keys, upload(numbers, x.device), count, blocks,
            NOISY=noisy, BLOCK=block, enable_fp_fusion=False,
        )  # fmt: skip
    return out


def builds() -> list[Build]:
    types = {"x": "*fp32", "velocity": "*fp32", "out": "*fp32", "keys": "*i64", "steps": "*fp64"}
    types |= {"count": "i32", "blocks": "i32"}
    return [
        Build(_kernel, types, {"NOISY": noisy, "BLOCK": noise.LANES}, 4, label, options={"enable_fp_fusion": False})
        for noisy, label in ((True, "exact"), (False, "exact, Euler alone"))
    ]
