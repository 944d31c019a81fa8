"""Windows cut from recorded episodes: latents with the conditions of every frame, and damage done to contexts.

Legend: B windows, F frames, N tokens, C channels. All randomness comes from the generators handed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ...models.drive.memory import PICTURE_TOKENS
from ...models.drive.transformer import CondB, CondBF
from .data import open_episodes

MEMORY_NOISE = 0.1  # share of the contexts' noise that memory tokens get


@dataclass(frozen=True, slots=True)
class Latents:
    """A whole data set in memory."""

    latents_ETNC: Tensor  # float16
    controls_ETK: Tensor
    look_ETL: Tensor
    innovations_ETI: Tensor


@dataclass(frozen=True, slots=True)
class Window:
    latents_BFNC: Tensor
    controls_BFK: Tensor
    look_BFL: Tensor
    innovations_BFI: Tensor

    def cond(self, sigma_BF: Tensor) -> CondBF:
        return CondBF(self.controls_BFK, self.look_BFL, self.innovations_BFI, sigma_BF)

    def cond_at(self, frame: int) -> CondB:
        return CondB(self.controls_BFK[:, frame], self.look_BFL[:, frame], self.innovations_BFI[:, frame])

    def rows(self, first: int, end: int) -> Window:
        whole = (self.latents_BFNC, self.controls_BFK, self.look_BFL, self.innovations_BFI)
        return Window(*(t[first:end] for t in whole))

    def part(self, first: int, frames: int) -> Window:
        cut = slice(first, first + frames)
        return Window(
            self.latents_BFNC[:, cut], self.controls_BFK[:, cut], self.look_BFL[:, cut], self.innovations_BFI[:, cut]
        )


def load_latents(folder: Path) -> Latents:
    """Read a data set; episodes that have no latents yet are left out."""
    recorded = open_episodes(folder)
    latents = np.load(folder / "latents.npy")
    latents = np.concatenate([latents, recorded.memory[: len(latents)]], 2)
    whole = (recorded.controls, recorded.look, recorded.innovations)
    controls, look, innovations = (torch.from_numpy(np.array(a[: len(latents)])) for a in whole)
    return Latents(torch.from_numpy(latents), controls.float(), look, innovations)


def frames_at_random(data: Latents, frames: int, rng: np.random.Generator) -> tuple[Tensor, CondB]:
    """Single frames [B, N, C] of any episodes, and what conditions each."""
    window = sample(data, frames, 1, rng)
    return window.latents_BFNC[:, 0], window.cond_at(0)


def sample(data: Latents, windows: int, frames: int, rng: np.random.Generator) -> Window:
    """Windows at random places."""
    episodes, times = data.controls_ETK.shape[:2]
    first = rng.integers(times - frames + 1, size=windows)
    return _cut(data, rng.integers(episodes, size=windows), first, frames)


def sample_switches(data: Latents, windows: int, frames: int, after: int, rng: np.random.Generator) -> Window:
    """Windows in which the look begins to change `after` to `after` + 3 frames from their start."""
    plain = data.look_ETL.max(2).values > 0.99
    begins = (plain[:, :-1] & (data.look_ETL[:, 1:] != data.look_ETL[:, :-1]).any(2)).numpy()
    e, t = np.nonzero(begins)
    chosen = rng.integers(len(e), size=windows)
    first = t[chosen] + 1 - after - rng.integers(4, size=windows)
    return _cut(data, e[chosen], np.clip(first, 0, begins.shape[1] + 1 - frames), frames)


def _cut(data: Latents, episode: NDArray[np.int64], first: NDArray[np.int64], frames: int) -> Window:
    e, t = torch.from_numpy(episode)[:, None], torch.from_numpy(first)[:, None] + torch.arange(frames)
    return Window(
        data.latents_ETNC[e, t].float(), data.controls_ETK[e, t], data.look_ETL[e, t], data.innovations_ETI[e, t]
    )


def joined(first: Window, second: Window) -> Window:
    """The rows of both."""
    return Window(
        torch.cat([first.latents_BFNC, second.latents_BFNC]),
        torch.cat([first.controls_BFK, second.controls_BFK]),
        torch.cat([first.look_BFL, second.look_BFL]),
        torch.cat([first.innovations_BFI, second.innovations_BFI]),
    )


def with_noise(context_BFNC: Tensor, largest_B: Tensor, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noise context frames up to a limit drawn per window, at most `largest_B`; a fifth stay clean. Also the levels.

    Memory tokens get `MEMORY_NOISE` of the level: under heavy noise the picture can be had from them alone.
    """
    b, f, n = context_BFNC.shape[:3]
    limit = (torch.rand(b, 1, generator=g) * largest_B[:, None]).clamp(max=1) * (torch.rand(b, 1, generator=g) < 0.8)
    sigma = torch.rand(b, f, generator=g) * limit
    s = sigma[..., None, None] * torch.where(torch.arange(n) < PICTURE_TOKENS, 1.0, MEMORY_NOISE)[:, None]
    return (1 - s) * context_BFNC + s * torch.randn(context_BFNC.shape, generator=g), sigma


def with_damage(context_BFNC: Tensor, share: float, g: torch.Generator) -> Tensor:
    """Lasting faults a rollout may pick up: gain, channel offsets, smooth stains; in `share` of the windows."""
    b, _, n, c = context_BFNC.shape
    picture = (torch.arange(n) < PICTURE_TOKENS).float()[:, None]
    on = (torch.rand(b, 1, 1, 1, generator=g) < share).float()
    gain = 1 + on * (torch.rand(b, 1, 1, 1, generator=g) * 0.5 - 0.2)
    offset = on * 0.25 * torch.randn(b, 1, 1, c // 4, generator=g).repeat_interleave(4, -1)
    stains = F.interpolate(torch.randn(b, c, 3, 4, generator=g), (5, 8), mode="bilinear")
    stained = F.pad(stains.permute(0, 2, 3, 1).reshape(b, 1, PICTURE_TOKENS, c), (0, 0, 0, n - PICTURE_TOKENS))
    return context_BFNC * (1 + (gain - 1) * picture) + offset * picture + on * 0.2 * stained


def target_sigma(windows: int, targets: int, share_of_ones: float, g: torch.Generator) -> Tensor:
    """Noise levels of targets: exactly 1 for most, else uniform."""
    sigma = 0.02 + 0.96 * torch.rand(windows, targets, generator=g)
    return torch.where(torch.rand(windows, targets, generator=g) < share_of_ones, torch.ones(()), sigma)
