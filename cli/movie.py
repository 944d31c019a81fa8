"""Writes the frames of a rollout to a film, one after the other as they are made."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
from av.video.codeccontext import VideoCodecContext

from ..clock import Clock
from ..engine.device.device import Device
from ..engine.output.pixels import mark, shown
from ..engine.rollout import Rollout
from ..film import CLOCK, Film
from ..models.contract.card import FrameSpec
from ..models.contract.loaded import LoadedCard


@dataclass(frozen=True, slots=True)
class MadeFilm:
    """What was written: `frames` in `seconds` of work; `stopped`: before all were made. No frame, no file."""

    frames: int
    seconds: float
    stopped: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """A world along `held` controls, one tuple a chunk; `frames` at most."""

    prompt: str
    held: Sequence[tuple[float, ...]]
    frames: int
    seed: int
    steps: int | None


async def write_movie(
    loaded: LoadedCard, plan: Plan, out: Path, device: Device, clock: Clock, written: Callable[[], None]
) -> MadeFilm:
    """A film at the card's own rate and size; `written` is called after each frame.

    Cancelled, it is a whole film of what was made until then; a fault leaves nothing behind. Raises what a step raises,
    and OSError.
    """
    frame, began = loaded.card.frame, clock.now()
    count, stopped = 0, False
    try:
        film, encoder = Film(out, frame.fps), _FilmEncoder(frame)
        try:
            rollout = Rollout(loaded, device, clock, plan.seed, plan.steps)
            try:
                async for frames in rollout.frames(plan.prompt, plan.held):
                    for picture in frames[: plan.frames - count]:
                        _write(film, encoder.encode(picture))
                        count += 1
                        written()
            except asyncio.CancelledError:
                stopped = True
            _write(film, encoder.rest())
        except BaseException:
            film.discard()
            raise
        film.close()
    finally:
        await device.close()
    return MadeFilm(count, clock.now() - began, stopped)


Encoded = tuple[int, bytes, bool]
"""When it is shown, in ticks of the film; the bytes; whether it is a key frame."""


def _write(film: Film, encoded: Iterator[Encoded]) -> None:
    for tick, data, key in encoded:
        film.frame(tick, data, key)


class _FilmEncoder:
    """x264 at its own usual quality, which takes its time: for films that nobody waits for. Frames stay in order."""

    def __init__(self, frame: FrameSpec) -> None:
        context = av.CodecContext.create("libx264", "w")
        assert isinstance(context, VideoCodecContext)
        context.width, context.height, context.pix_fmt = frame.shown_width, frame.shown_height, "yuv420p"
        context.time_base, context.framerate = Fraction(1, frame.fps), Fraction(frame.fps, 1)
        context.options = {"bf": "0"}
        mark(context)
        self._context, self._frame, self._count = context, frame, 0

    def encode(self, picture: npt.NDArray[np.uint8]) -> Iterator[Encoded]:
        """What is ready now; often frames from before this one."""
        planes = shown(picture, self._frame)
        planes.pts, planes.time_base = self._count, self._context.time_base
        self._count += 1
        yield from self._packets(planes)

    def rest(self) -> Iterator[Encoded]:
        if self._count:
            yield from self._packets(None)

    def _packets(self, planes: av.VideoFrame | None) -> Iterator[Encoded]:
        for packet in self._context.encode(planes):
            assert packet.pts is not None, "every frame went in with a time"
            yield packet.pts * CLOCK // self._frame.fps, bytes(packet), packet.is_keyframe
