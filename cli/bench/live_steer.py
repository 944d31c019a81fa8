"""Is a steer visible in the pictures that a viewer of a real server gets? Keys and prompts, judged as dreams are.

The judge (`training/drive/judge.py`) was validated on the simulator's pictures, where the truth is known. Counted in
frames from the first one that contains the steer, so a slow machine gives the same figures.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from ...clients.python.latency import LatencySpread, spread
from ...clients.python.pictures import RoomFrame
from ...clients.python.room import RoomClient, join
from ...models.drive.card import FPS, PICTURE_HEIGHT, PICTURE_WIDTH, WEIGHTS
from ...models.shared.road.autoencoder import to_model
from ...models.shared.road.look import BIOMES, THEMES, TIMES, WEATHERS, Theme, theme_of
from ...rtc.wire import Receipt, Transition
from ...training.drive.judge import Judge, load_judge

STEER_FRAMES = (12, 24)
SETTLE_FRAMES = 24
REACHED_S = 1.5
BLEND_S = 0.5
NEAR_ROW = 1
GAS, LEFT, RIGHT = "ArrowUp", "ArrowLeft", "ArrowRight"

Picture = NDArray[np.uint8]


class SteerReport(msgspec.Struct, frozen=True):
    """`right_side`: share of worlds whose road lies further right under left than under right, 12 and 24 frames on.

    `reached`: share of prompts whose time, biome and weather all show within 36 frames; `frames`: how many it took.
    """

    trials: int
    right_side_12: float
    right_side_24: float
    reached: float
    frames: LatencySpread
    time: float
    biome: float
    weather: float


@dataclass(frozen=True, slots=True)
class SeenPicture:
    """One frame as the judge takes it, with what it contains."""

    picture_HW3: Picture
    receipt: Receipt


async def measure_steering(base: str, trials: int, seed: int) -> SteerReport:
    """Drive one room of a server that serves `drive`. Raises what `join` raises."""
    judge, dice = load_judge(WEIGHTS / "judge.safetensors"), random.Random(seed)
    sides: list[list[bool]] = []
    looks: list[Look] = []
    async with join(f"{base}/r/steer", loopback=True, seed=dice.getrandbits(30)) as room:
        for _ in range(trials):
            world, words = dice.getrandbits(30), dice.sample(range(THEMES), 2)
            await _show(room, words[0], Transition.CUT)
            left, right = [await _road(room, judge, world, key) for key in (LEFT, RIGHT)]
            sides.append([a > b for a, b in zip(left, right, strict=True)])
            looks.append(await _change(room, judge, words[1]))
    return SteerReport(
        trials=trials,
        right_side_12=_share([side[0] for side in sides]),
        right_side_24=_share([side[1] for side in sides]),
        reached=_share([look.frames is not None for look in looks]),
        frames=spread([float(look.frames) for look in looks if look.frames is not None]),
        time=_share([look.right[0] for look in looks]),
        biome=_share([look.right[1] for look in looks]),
        weather=_share([look.right[2] for look in looks]),
    )


@dataclass(frozen=True, slots=True)
class Look:
    """`frames` until all three attributes showed, None = not in time; `right`: which did at the end."""

    frames: int | None
    right: tuple[bool, bool, bool]


async def _road(room: RoomClient, judge: Judge, world: int, key: str) -> list[float]:
    """Columns of the road's middle `STEER_FRAMES` after `key` went down in a world that has driven for a second."""
    before = (await _frames(room, lambda receipt: True, 1))[0].receipt.epoch
    await room.applied(await room.reset(world))
    room.press(GAS)
    await _frames(room, lambda receipt: receipt.epoch > before, SETTLE_FRAMES)
    seq = room.press(key)
    frames = await _frames(room, lambda receipt: receipt.input_seq >= seq, STEER_FRAMES[-1])
    room.release(key)
    room.release(GAS)
    centre_NR = judge(_pictures([frames[at - 1] for at in STEER_FRAMES])).centre_NR
    return [float(column) for column in centre_NR[:, NEAR_ROW]]


async def _change(room: RoomClient, judge: Judge, theme: int) -> Look:
    room.press(GAS)
    frames = await _show(room, theme, Transition.BLEND)
    room.release(GAS)
    seen = judge(_pictures(frames)).attributes() == torch.tensor(theme_of(theme))
    first = next((number for number, right in enumerate(seen.all(1).tolist(), 1) if right), None)
    time, biome, weather = seen[-1].tolist()
    return Look(first, (time, biome, weather))


async def _show(room: RoomClient, theme: int, transition: Transition) -> list[SeenPicture]:
    """Ask for a look; the frames of a second and a half from the first one that contains it."""
    chunk = await room.applied(await room.prompt(words_of(theme_of(theme)), transition, BLEND_S))
    return await _frames(room, lambda receipt: receipt.chunk >= chunk, round(REACHED_S * FPS))


def words_of(theme: Theme) -> str:
    return f"{WEATHERS[theme.weather]} {TIMES[theme.time]} {BIOMES[theme.biome]}"


async def _frames(room: RoomClient, contains: Callable[[Receipt], bool], count: int) -> list[SeenPicture]:
    """The next `count` frames, from the first one on that contains the steer."""
    seen: list[SeenPicture] = []
    async for frame in room.frames():
        if frame.receipt is not None and (seen or contains(frame.receipt)):
            seen.append(SeenPicture(_small(frame), frame.receipt))
        if len(seen) == count:
            return seen
    raise ConnectionError("the room ended during the measurement")


def _small(frame: RoomFrame) -> Picture:
    """The model's own size again: the stream is enlarged by a whole factor."""
    assert frame.picture is not None, "this client decodes"
    small = frame.picture.reformat(PICTURE_WIDTH, PICTURE_HEIGHT, "rgb24", interpolation="AREA")
    return np.asarray(small.to_ndarray(), np.uint8)


def _pictures(frames: list[SeenPicture]) -> torch.Tensor:
    return to_model(torch.from_numpy(np.stack([frame.picture_HW3 for frame in frames])))


def _share(right: list[bool]) -> float:
    return round(sum(right) / len(right), 3) if right else 0.0


def run(base: str, trials: int, seed: int) -> SteerReport:
    torch.set_num_threads(1)
    return asyncio.run(measure_steering(base, trials, seed))
