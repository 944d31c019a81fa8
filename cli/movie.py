"""Writes the frames of a rollout to an MP4, one after the other as they are made."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
from av.container import OutputContainer
from av.video.stream import VideoStream

from ..clock import Clock
from ..engine.device.device import Device
from ..engine.output.pixels import mark, shown
from ..engine.rollout import Rollout
from ..models.contract.card import FrameSpec
from ..models.contract.loaded import LoadedCard


@dataclass(frozen=True, slots=True)
class Film:
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
) -> Film:
    """A film at the card's own rate and size; `written` is called after each frame.

    It lies beside `out` under another name until it is whole. Cancelled, it is a whole film of what was made until
    then; a fault leaves nothing behind. Raises what a step raises, and OSError.
    """
    part, frame, began = out.with_name(out.name + ".part"), loaded.card.frame, clock.now()
    count, stopped = 0, False
    try:
        with av.open(str(part), "w", format="mp4") as container:
            stream = _stream(container, frame)
            try:
                async for frames in Rollout(loaded, device, clock, plan.seed, plan.steps).frames(
                    plan.prompt, plan.held
                ):
                    for picture in frames[: plan.frames - count]:
                        container.mux(stream.encode(shown(picture, frame)))
                        count += 1
                        written()
            except asyncio.CancelledError:
                stopped = True
            if count:
                container.mux(stream.encode(None))
        if count:
            part.replace(out)
    finally:
        part.unlink(missing_ok=True)
        await device.close()
    return Film(count, clock.now() - began, stopped)


def _stream(container: OutputContainer, frame: FrameSpec) -> VideoStream:
    stream = container.add_stream("libx264", rate=frame.fps)
    assert isinstance(stream, VideoStream)
    stream.width, stream.height, stream.pix_fmt = frame.shown_width, frame.shown_height, "yuv420p"
    mark(stream.codec_context)
    return stream
