"""Windows cut from recorded episodes: latents with the conditions of every frame, and damage done to contexts.

Legend: B windows, F frames, N tokens, C channels. All randomness comes from the generators handed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ...models.drive.transformer import CondB, CondBF
from .data import open_episodes


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
    whole = (recorded.controls, recorded.look, recorded.innovations)
    controls, look, innovations = (torch.from_numpy(np.array(a[: len(latents)])) for a in whole)
    return Latents(torch.from_numpy(latents), controls.float(), look, innovations)


def sample(data: Latents, windows: int, frames: int, rng: np.random.Generator) -> Window:
    """Windows at random places."""
    episodes, times = data.controls_ETK.shape[:2]
    e = torch.from_numpy(rng.integers(episodes, size=windows))[:, None]
    t = torch.from_numpy(rng.integers(times - frames + 1, size=windows))[:, None] + torch.arange(frames)
    return Window(
        data.latents_ETNC[e, t].float(), data.controls_ETK[e, t], data.look_ETL[e, t], data.innovations_ETI[e, t]
    )


def with_noise(context_BFNC: Tensor, largest: float, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noise every context frame at a level up to a limit drawn per window; a fifth stay clean. Also the levels."""
    b, f = context_BFNC.shape[:2]
    limit = torch.rand(b, 1, generator=g) * largest * (torch.rand(b, 1, generator=g) < 0.8)
    sigma = torch.rand(b, f, generator=g) * limit
    s = sigma[..., None, None]
    return (1 - s) * context_BFNC + s * torch.randn(context_BFNC.shape, generator=g), sigma


def with_damage(context_BFNC: Tensor, share: float, g: torch.Generator) -> Tensor:
    """Lasting faults a rollout may pick up: gain, channel offsets, smooth stains; in `share` of the windows."""
    b, _, n, c = context_BFNC.shape
    on = (torch.rand(b, 1, 1, 1, generator=g) < share).float()
    gain = 1 + on * (torch.rand(b, 1, 1, 1, generator=g) * 0.5 - 0.2)
    offset = on * 0.25 * torch.randn(b, 1, 1, c // 4, generator=g).repeat_interleave(4, -1)
    stains = F.interpolate(torch.randn(b, c, 3, 4, generator=g), (5, 8), mode="bilinear")
    return context_BFNC * gain + offset + on * 0.2 * stains.permute(0, 2, 3, 1).reshape(b, 1, n, c)


def target_sigma(windows: int, targets: int, share_of_ones: float, g: torch.Generator) -> Tensor:
    """Noise levels of targets: exactly 1 for most, else uniform."""
    sigma = 0.02 + 0.96 * torch.rand(windows, targets, generator=g)
    return torch.where(torch.rand(windows, targets, generator=g) < share_of_ones, torch.ones(()), sigma)
