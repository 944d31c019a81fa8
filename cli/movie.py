"""Writes the frames of a rollout to an MP4, one after the other as they are made."""

from collections.abc import Sequence
from pathlib import Path

import av
from av.video.stream import VideoStream

from ..clock import SystemClock
from ..engine.device.worker import ThreadDevice
from ..engine.rollout import Rollout
from ..engine.showing.pictures import mark, shown
from ..models.contract.loaded import LoadedCard


async def write_movie(
    loaded: LoadedCard, prompt: str, held: Sequence[tuple[float, ...]], out: Path, seed: int, steps: int | None
) -> int:
    """Returns how many frames were written, at the card's own rate and size."""
    frame, clock = loaded.card.frame, SystemClock()
    device = ThreadDevice(clock)
    count = 0
    try:
        with av.open(str(out), "w", format="mp4") as container:
            stream = container.add_stream("libx264", rate=frame.fps)
            assert isinstance(stream, VideoStream)
            stream.width, stream.height, stream.pix_fmt = frame.shown_width, frame.shown_height, "yuv420p"
            mark(stream.codec_context)
            async for frames in Rollout(loaded, device, clock, seed, steps).frames(prompt, held):
                for picture in frames:
                    container.mux(stream.encode(shown(picture, frame)))
                    count += 1
            container.mux(stream.encode(None))
    finally:
        await device.close()
    return count
