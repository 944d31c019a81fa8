"""Windows cut from shards, and what is done to their frames: noise on contexts, noise levels of targets.

Legend: B windows, F frames, P picture tokens, C channels, D dice, M private labels. All randomness comes from the
generators handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...models.dream.card import NOISE
from ...models.dream.transformer import PICTURE, CondBF
from .data import Shard, labels_of
from .stage_recurrence import Recurrence

GOES_ON = 6  # frames, on average, before recurrent tokens are written anew
Place = tuple[int, int, int]
"""Shard, episode, first frame."""


@dataclass(frozen=True, slots=True)
class Window:
    latents_BFPC: Tensor
    controls_BFK: Tensor
    look_BFL: Tensor
    dice_BFD: Tensor
    state_BFR: Tensor

    def cond(self, noise_BFZ: Tensor, sigma_BF: Tensor) -> CondBF:
        return CondBF(self.controls_BFK, self.look_BFL, noise_BFZ, self.state_BFR, sigma_BF)

    def _all(self) -> tuple[Tensor, ...]:
        return (self.latents_BFPC, self.controls_BFK, self.look_BFL, self.dice_BFD, self.state_BFR)

    def rows(self, first: int, end: int) -> Window:
        return Window(*(t[first:end] for t in self._all()))

    def part(self, first: int, frames: int) -> Window:
        return Window(*(t[:, first : first + frames] for t in self._all()))


@dataclass(slots=True)
class Store:
    """Shards in memory, each with the recurrent tokens [E, T, R] of its drives; windows are cut from any of them."""

    shards: list[Shard]
    tracks: list[NDArray[np.float16]]

    def sample(self, windows: int, frames: int, rng: np.random.Generator) -> Window:
        """Windows at random places."""
        return self.cut([self.place(frames, rng) for _ in range(windows)], frames)

    def sample_switches(self, windows: int, frames: int, after: tuple[int, int], rng: np.random.Generator) -> Window:
        """Windows in which a look begins to change between `after` frames from their start."""
        return self.cut([self.switch_place(frames, after, rng) for _ in range(windows)], frames)

    def place(self, frames: int, rng: np.random.Generator) -> Place:
        shard = int(rng.integers(len(self.shards)))
        episodes, times = self.shards[shard].dice.shape[:2]
        return shard, int(rng.integers(episodes)), int(rng.integers(times - frames + 1))

    def switch_place(self, frames: int, after: tuple[int, int], rng: np.random.Generator) -> Place:
        """Where a look begins to change within `after` frames."""
        while True:
            shard, begins = int(rng.integers(len(self.shards))), rng.integers(*after)
            look = self.shards[shard].look
            episode = int(rng.integers(len(look)))
            changed = (look[episode, 1:] != look[episode, :-1]).any(1)
            plain = look[episode, :-1].max(1) > 0.99
            at = np.flatnonzero(changed & plain) + 1 - begins
            at = at[(at >= 0) & (at <= look.shape[1] - frames)]
            if len(at):
                return shard, episode, int(rng.choice(at))

    def cut(self, places: Sequence[Place], frames: int) -> Window:
        """The windows that begin at these places."""

        def stacked(rows: Sequence[NDArray[np.generic]]) -> Tensor:
            parts = [rows[s][e, t : t + frames] for s, e, t in places]
            return torch.from_numpy(np.stack(parts).astype(np.float32))

        return Window(
            latents_BFPC=stacked([shard.latents for shard in self.shards]),
            controls_BFK=stacked([shard.controls for shard in self.shards]),
            look_BFL=stacked([shard.look for shard in self.shards]),
            dice_BFD=stacked([shard.dice for shard in self.shards]),
            state_BFR=stacked(self.tracks),
        )


@torch.no_grad()
def store_of(shards: list[Shard], recurrence: Recurrence, seed: int) -> Store:
    """With tokens that go on by themselves for a while and are written anew now and then, in place of drifting."""
    g, tracks = torch.Generator().manual_seed(seed), []
    for shard in shards:
        labels = torch.from_numpy(labels_of(shard, slice(None), slice(None)))
        noise = frame_noise(torch.from_numpy(shard.dice), g)
        again = torch.rand(shard.luck.shape[:2], generator=g) < 1 / GOES_ON
        controls = torch.from_numpy(shard.controls).float()
        tracks.append(recurrence.track(labels, controls, noise, again).half().numpy())
    return Store(shards, tracks)


def joined(parts: Sequence[Window]) -> Window:
    """The rows of all."""
    return Window(*(torch.cat(tensors) for tensors in zip(*(part._all() for part in parts), strict=True)))


def frame_noise(dice_BFD: Tensor, g: torch.Generator) -> Tensor:
    """Noise of frames [B, F, Z]: plain Gaussian, whose first numbers are the simulator's dice."""
    free = torch.randn(*dice_BFD.shape[:2], NOISE - dice_BFD.shape[-1], generator=g)
    return torch.cat([dice_BFD, free], -1)


def with_noise(context_BFPC: Tensor, largest_B: Tensor, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noise context frames up to a limit drawn per window, at most `largest_B`; a fifth stay clean. Also the levels."""
    b, f = context_BFPC.shape[:2]
    limit = (torch.rand(b, 1, generator=g) * largest_B[:, None]).clamp(max=1) * (torch.rand(b, 1, generator=g) < 0.8)
    sigma = torch.rand(b, f, generator=g) * limit
    s = sigma[..., None, None]
    return (1 - s) * context_BFPC + s * torch.randn(context_BFPC.shape, generator=g), sigma


def with_damage(context_BFPC: Tensor, share: float, g: torch.Generator) -> Tensor:
    """Lasting faults a rollout may pick up: gain, channel offsets, smooth stains; in `share` of the windows."""
    b, _, _, c = context_BFPC.shape
    on = (torch.rand(b, 1, 1, 1, generator=g) < share).float()
    gain = 1 + on * (torch.rand(b, 1, 1, 1, generator=g) * 0.5 - 0.2)
    offset = on * 0.25 * torch.randn(b, 1, 1, c // 4, generator=g).repeat_interleave(4, -1)
    coarse = torch.randn(b, c, 3, 4, generator=g)
    stains = torch.nn.functional.interpolate(coarse, (5, 8), mode="bilinear").permute(0, 2, 3, 1)
    return context_BFPC * gain + offset + on * 0.2 * stains.reshape(b, 1, PICTURE, c)


def target_sigma(windows: int, targets: int, share_of_ones: float, g: torch.Generator) -> Tensor:
    """Noise levels of targets, each frame its own: exactly 1 for many, else uniform."""
    sigma = 0.02 + 0.97 * torch.rand(windows, targets, generator=g)
    return torch.where(torch.rand(windows, targets, generator=g) < share_of_ones, torch.ones(()), sigma)
