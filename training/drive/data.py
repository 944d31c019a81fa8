"""Episodes of simulated driving on disk: pictures and everything that is known about them.

    <run>/<name>/frames.npy        uint8   [E, T, 80, 128, 3]
    <run>/<name>/latents.npy       float16 [E, T, 40, 32]      written by the autoencoder stage
    <run>/<name>/{controls,look,innovations,theme,speed,centre,objects,memory}.npy

Shapes: E episodes, T frames. Seeded; every worker process writes its own rows of the shared files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...models.drive import innovations as process
from ...models.drive.innovations import INNOVATIONS, InnovationState
from ...models.drive.memory import CHANNELS, MEMORY_TOKENS
from ...models.shared.road.look import LOOK
from .remember import remember
from .simulator.driver import change_themes, new_driver
from .simulator.labels import CENTRE_ROWS, road_centre_px, visible_objects
from .simulator.render import render
from .simulator.road import HEIGHT, WIDTH
from .simulator.world import CONTROLS, World, advance, first_world

Array = NDArray[np.float32]
LEAD_IN = 140  # frames driven before recording, so that objects stand beside the road
GROUP = 20  # episodes one task simulates together


@dataclass(frozen=True, slots=True)
class Episodes:
    """Memory maps of one data set; `innovations[e, t]` and `controls[e, t]` are what led to frame t."""

    frames: NDArray[np.uint8]
    controls: NDArray[np.int8]
    look: Array
    innovations: Array
    theme: NDArray[np.int64]  # theme faded to
    speed: Array
    centre: Array  # road's middle in pixels at CENTRE_ROWS
    objects: NDArray[np.int64]
    memory: NDArray[np.float16]  # memory tokens of models/drive/memory.py

    @property
    def shape(self) -> tuple[int, int]:
        return self.speed.shape[0], self.speed.shape[1]


def _layout(e: int, t: int) -> list[tuple[str, type[np.generic], tuple[int, ...]]]:
    return [
        ("frames", np.uint8, (e, t, HEIGHT, WIDTH, 3)),
        ("controls", np.int8, (e, t, len(CONTROLS))),
        ("look", np.float32, (e, t, LOOK)),
        ("innovations", np.float32, (e, t, INNOVATIONS)),
        ("theme", np.int64, (e, t)),
        ("speed", np.float32, (e, t)),
        ("centre", np.float32, (e, t, len(CENTRE_ROWS))),
        ("objects", np.int64, (e, t)),
        ("memory", np.float16, (e, t, MEMORY_TOKENS, CHANNELS)),
    ]


def open_episodes(folder: Path, mode: str = "r") -> Episodes:
    """Map the files of a finished data set."""
    return Episodes(*(np.load(folder / f"{f.name}.npy", mmap_mode=mode) for f in fields(Episodes)))  # type: ignore[arg-type]


def is_complete(folder: Path) -> bool:
    return (folder / "complete").exists()


@dataclass(slots=True)
class Innovator:
    """The innovation process of a batch of sessions, seeds first_seed, first_seed + 1, .."""

    first_seed: int
    states: list[InnovationState]
    frame: int = 0

    def draw(self) -> Array:
        rows = []
        for i, state in enumerate(self.states):
            row, self.states[i] = process.draw(self.first_seed + i, 0, self.frame, state)
            rows.append(row)
        self.frame += 1
        return np.stack(rows)


def new_innovator(first_seed: int, sessions: int) -> Innovator:
    return Innovator(first_seed, [process.start(first_seed + i, 0) for i in range(sessions)])


def lead_in(world: World, innovator: Innovator, rng: np.random.Generator, frames: int = LEAD_IN) -> None:
    """Drive on without drawing, so that the road bends and objects stand beside it."""
    driver = new_driver(rng, len(world.speed_B))
    for _ in range(frames):
        advance(world, driver.controls(world), innovator.draw())


def _simulate(folder: Path, first: int, sessions: int, frames: int, seed: int) -> int:
    rng = np.random.default_rng([seed, first])
    world, innovator = first_world(rng, sessions), new_innovator(seed * 1_000_003 + first, sessions)
    lead_in(world, innovator, rng)
    driver, out, rows = new_driver(rng, sessions), open_episodes(folder, "r+"), slice(first, first + sessions)
    for t in range(frames):
        change_themes(world, rng)
        controls, innovations = driver.controls(world), innovator.draw()
        advance(world, controls, innovations)
        out.frames[rows, t] = render(world)
        out.controls[rows, t], out.innovations[rows, t] = controls, innovations
        out.look[rows, t], out.theme[rows, t], out.speed[rows, t] = world.look(), world.theme_B, world.speed_B
        out.centre[rows, t], out.objects[rows, t] = road_centre_px(world), visible_objects(world)
        out.memory[rows, t] = remember(world)
    return sessions * frames


def generate(
    folder: Path, episodes: int, frames: int, seed: int, workers: int, progress: Callable[[int], None]
) -> Episodes:
    """Simulate and record; `progress` is told how many frames were added. Does nothing when complete."""
    if not is_complete(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, kind, shape in _layout(episodes, frames):
            np.lib.format.open_memmap(folder / f"{name}.npy", "w+", kind, shape).flush()
        starts = range(0, episodes, GROUP)
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=os.nice, initargs=(0,)) as pool:
            tasks = [pool.submit(_simulate, folder, s, min(GROUP, episodes - s), frames, seed) for s in starts]
            for task in as_completed(tasks):
                progress(task.result())
        (folder / "complete").touch()
    return open_episodes(folder)
