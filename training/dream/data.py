"""Simulated driving without end, in numbered shards: latents of the pictures and all that is known about them.

    <run>/shards/<name>-<number>.npz   latents f16 [E, T, 40, 32], controls, look, dice, memory, luck (private labels)

A shard is a function of its name's seed and its number alone. Frames are drawn, encoded and forgotten.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ...models.shared.road.autoencoder import DriveAutoencoder, to_model
from ..drive.remember import remember
from ..drive.simulator.driver import change_themes, new_driver
from ..drive.simulator.render import render
from ..drive.simulator.world import World, advance, first_world
from .dice import Array, Luck, new_luck

EPISODES, FRAMES, LEAD_IN = 16, 480, 140
CHANGE_CHANCES = (1 / 40, 1 / 120, 1 / 400)  # of a look's change, by episode


@dataclass(frozen=True, slots=True)
class Shard:
    """`dice[e, t]`, `controls[e, t]` and `look[e, t]` are what led to frame t."""

    latents: NDArray[np.float16]
    controls: NDArray[np.int8]
    look: NDArray[np.float32]
    dice: NDArray[np.float32]
    memory: NDArray[np.float16]
    luck: NDArray[np.float32]


def labels_of(shard: Shard, episode: int | slice, frame: int | slice) -> Array:
    """All private labels [.., 99] of a frame, or of several."""
    memory, luck = shard.memory[episode, frame], shard.luck[episode, frame]
    return np.concatenate([memory.reshape(*luck.shape[:-1], -1), luck], -1).astype(np.float32)


def private(world: World, luck: Luck) -> Array:
    """All private labels [B, 99] of the world as it stands."""
    return np.concatenate([remember(world).reshape(len(world.speed_B), -1), luck.hidden()], 1)


def lead_in(world: World, luck: Luck, rng: np.random.Generator, frames: int = LEAD_IN) -> None:
    """Drive on without drawing, so that the road bends and objects stand beside it."""
    driver = new_driver(rng, len(world.speed_B))
    for _ in range(frames):
        advance(world, driver.controls(world), luck.draw()[1])


@torch.inference_mode()
def simulate(autoencoder: DriveAutoencoder, seed: int, number: int, episodes: int, frames: int) -> Shard:
    """Drive, draw and encode `episodes` sessions."""
    rng = np.random.default_rng([seed, number])
    world, luck = first_world(rng, episodes), new_luck(np.random.default_rng([seed, number, 1]), episodes)
    lead_in(world, luck, rng)
    driver = new_driver(rng, episodes)
    chance = np.resize(np.array(CHANGE_CHANCES), episodes)
    made: list[Shard] = []
    for _ in range(frames):
        change_themes(world, rng, chance)
        controls, (dice, innovations) = driver.controls(world), luck.draw()
        advance(world, controls, innovations)
        latents = autoencoder.encode(to_model(torch.from_numpy(render(world)))).half().numpy()
        remembered = remember(world).astype(np.float16)
        made.append(Shard(latents, controls, world.look(), dice, remembered, luck.hidden()))
    return Shard(*(np.stack([getattr(one, f.name) for one in made], 1) for f in fields(Shard)))


def shard_path(run: Path, name: str, number: int) -> Path:
    return run / "shards" / f"{name}-{number:04d}.npz"


def write_shard(shard: Shard, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    with part.open("wb") as file:
        np.savez(file, **{f.name: getattr(shard, f.name) for f in fields(Shard)})
    os.replace(part, path)


def read_shard(path: Path) -> Shard:
    with np.load(path) as file:
        return Shard(*(file[f.name] for f in fields(Shard)))
