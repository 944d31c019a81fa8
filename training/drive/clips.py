"""Clips of worlds of the road, made by a model or by the simulator, and clips broken on purpose.

A `Player` is a batch of worlds that goes on by one frame under keys. Keys come from a driver that looks at the pictures
it gets, so a world is driven by what it shows, whatever the simulator beside it does.

Legend: S sessions, F frames, K controls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...models.shared.road.autoencoder import to_model
from .judge import Judge, Verdict
from .simulator.render import render
from .simulator.world import World

Keys = NDArray[np.int8]


class Player(Protocol):
    """Worlds in lock-step; `world` is the simulated course beside them."""

    @property
    def world(self) -> World: ...

    def next(self, keys_SK: Keys) -> Tensor:
        """One frame on: pictures [S, 3, 80, 128] in [-1, 1]."""
        ...


Maker = Callable[[int, int], Player]
"""Worlds of a seed: (seed, sessions)."""


@dataclass(frozen=True, slots=True)
class Clip:
    """`pictures_SFHWC` uint8; `keys_SFK` led to each picture; `first` is the number of the first frame."""

    pictures_SFHWC: NDArray[np.uint8]
    keys_SFK: Keys
    first: int


@dataclass(slots=True)
class LookingDriver:
    """Steers by the road it sees, at a pace that changes; holds a steering key or brakes for a while now and then."""

    rng: np.random.Generator
    pace_S: NDArray[np.float64]
    place_S: NDArray[np.float64]
    held_S: NDArray[np.int64]
    left_S: NDArray[np.int64]

    def keys(self, seen: Verdict) -> Keys:
        rng, n = self.rng, len(self.pace_S)
        self.left_S -= 1
        new = self.left_S <= 0
        self.left_S = np.where(new, rng.integers(16, 60, n), self.left_S)
        self.pace_S = np.where(new, rng.choice((0.0, 10.0, 18.0, 26.0), n, p=(0.1, 0.3, 0.4, 0.2)), self.pace_S)
        self.place_S = np.where(new, rng.uniform(-12, 12, n), self.place_S)
        self.held_S = np.where(new, rng.choice((-1, 0, 1), n, p=(0.12, 0.76, 0.12)), self.held_S)
        aside, speed = seen.centre_NR[:, 1].numpy() - 64 - self.place_S, seen.speed_N.numpy()
        held = (self.held_S != 0) & (self.left_S > 30)
        steer = np.where(held, self.held_S, np.where(np.abs(aside) > 5, np.sign(aside), 0))
        return np.stack([steer < 0, steer > 0, speed < self.pace_S - 0.6, speed > self.pace_S + 3], 1).astype(np.int8)


def looking_driver(seed: int, sessions: int) -> LookingDriver:
    zeros = np.zeros(sessions)
    return LookingDriver(
        np.random.default_rng([seed, 9]), zeros + 15, zeros, np.zeros(sessions, np.int64), zeros.astype(int)
    )


@torch.inference_mode()
def play(maker: Maker, judge: Judge, sessions: int, windows: tuple[tuple[int, int], ...], seed: int) -> list[Clip]:
    """Drive on and keep the frames of each window (first, end), which follow each other; one clip for each."""
    player, driver = maker(seed, sessions), looking_driver(seed, sessions)
    keys = np.tile(np.array([0, 0, 1, 0], np.int8), (sessions, 1))
    kept: list[tuple[list[NDArray[np.uint8]], list[Keys]]] = [([], []) for _ in windows]
    for frame in range(windows[-1][1]):
        picture = player.next(keys)
        for (first, end), (pictures, pressed) in zip(windows, kept, strict=True):
            if first <= frame < end:
                pictures.append(_bytes(picture))
                pressed.append(keys)
        keys = driver.keys(judge(picture))
    return [
        Clip(np.stack(pictures, 1), np.stack(pressed, 1), first)
        for (first, _), (pictures, pressed) in zip(windows, kept, strict=True)
    ]


def _bytes(picture_S3HW: Tensor) -> NDArray[np.uint8]:
    levels: NDArray[np.uint8] = ((picture_S3HW.clamp(-1, 1) + 1) * 127.5 + 0.5).byte().permute(0, 2, 3, 1).numpy()
    return levels


def tensors(clip: Clip) -> Tensor:
    """Pictures [S, F, 3, H, W] in [-1, 1]."""
    flat = to_model(torch.from_numpy(clip.pictures_SFHWC.reshape(-1, *clip.pictures_SFHWC.shape[2:])))
    return flat.reshape(*clip.pictures_SFHWC.shape[:2], *flat.shape[1:])


def simulated(world: World) -> Tensor:
    """What the simulator shows of a world."""
    return to_model(torch.from_numpy(render(world)))


def frozen(clip: Clip, run: int = 8) -> Clip:
    """Broken: every picture is shown for `run` frames while the keys go on."""
    held = np.arange(clip.keys_SFK.shape[1]) // run * run
    return Clip(clip.pictures_SFHWC[:, held], clip.keys_SFK, clip.first)


def mirrored(clip: Clip) -> Clip:
    """Broken: left is right, so that steering turns the wrong way."""
    return Clip(np.ascontiguousarray(clip.pictures_SFHWC[:, :, :, ::-1]), clip.keys_SFK, clip.first)


def flickering(clip: Clip, share: float, seed: int) -> Clip:
    """Broken: in a share of the frames the picture of another session is shown."""
    pictures, rng = clip.pictures_SFHWC.copy(), np.random.default_rng(seed)
    wrong = rng.random(pictures.shape[:2]) < share
    pictures[wrong] = np.roll(clip.pictures_SFHWC, 1, 0)[wrong]
    return Clip(pictures, clip.keys_SFK, clip.first)


def softened(clip: Clip) -> Clip:
    """Broken: blurred, as a mean of many roads is."""
    x = clip.pictures_SFHWC.astype(np.uint16)
    for axis in (2, 3):
        x = (np.roll(x, 2, axis) + np.roll(x, 1, axis) + x + np.roll(x, -1, axis) + np.roll(x, -2, axis)) // 5
    return Clip(x.astype(np.uint8), clip.keys_SFK, clip.first)
