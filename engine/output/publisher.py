"""A session's way from raw frames to `Frame` events: each is encoded shortly before its playout time and leaves at it.

    chunk -> [raw frames, bounded] -> encoder thread -> wait for the playout time -> event

Frames keep their order. When the encoder falls behind, the oldest raw frame is dropped, never an encoded one; after the
world was redirected, frames of an older epoch are dropped wherever they are, and the next one is a key frame.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt

from ...clock import Clock
from ...models.contract.card import FrameSpec
from ..api import Frame, Timings
from ..counters import Counters
from ..scheduling.costs import Estimate
from ..wakeup import Wakeup
from .encode import EncodedFrame, H264Encoder, KeyGate
from .mosaic import Mosaic
from .playout import TICKS, Playout

DUE_MAX = 2


@dataclass(frozen=True, slots=True)
class RawFrame:
    """One raw frame, as the card makes them, and everything its event will say; `at` is its playout time.

    `took`: of a chunk's first frame, seconds from asking for the chunk's conditions, others' steps left out.
    """

    picture: npt.NDArray[np.uint8]
    at: float
    chunk: int
    epoch: int
    input_seq: int
    prompt_version: int
    controls: tuple[float, ...]
    begun: float
    timings: Timings
    took: float | None = None
    preview: bool = False


class FramePublisher:
    """See the module docstring. `encoding` learns what one frame costs from hand-over to packet, `made` gets what a
    chunk took until its first packet, `shown` every
    picture that has left, with its frame.
    """

    def __init__(
        self,
        session: str,
        frame: FrameSpec,
        clock: Clock,
        playout: Playout,
        threads: Executor,
        encoding: Estimate,
        made: Callable[[float], None],
        emit: Callable[[Frame], None],
        failed: Callable[[BaseException], None],
        counters: Counters,
        shown: Callable[[npt.NDArray[np.uint8], Frame], None] = lambda picture, frame: None,
    ) -> None:
        self._shown = shown
        self._session, self._clock, self._playout = session, clock, playout
        self._threads, self._encoding, self._made = threads, encoding, made
        self._emit, self._failed, self._counters = emit, failed, counters
        self._interval = 1.0 / frame.fps
        self._raw_max = 2 * frame.per_chunk + DUE_MAX
        self._raw: deque[RawFrame] = deque()
        self._changed = Wakeup()
        self._gate = KeyGate()
        self._epoch = 0
        self._last: RawFrame | None = None
        self._last_at = clock.now()
        self._last_pts = -1
        self._frames = 0
        self._encoder: H264Encoder | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._mosaic: Mosaic | None = None
        self._place = 0

    @property
    def _early(self) -> float:
        """Seconds before its playout time from which a frame may go to the encoder: it is the next one to be shown."""
        return max(self._interval, self._encoding.conservative)

    @property
    def last_shown(self) -> float:
        return self._last_at

    @property
    def shown(self) -> tuple[int, int]:
        """Number of the next frame, and the presentation time of the last one."""
        return self._frames, self._last_pts

    async def open(self, encoder: Callable[[], H264Encoder]) -> None:
        loop = asyncio.get_running_loop()
        made = await loop.run_in_executor(self._threads, encoder)
        if self._closed:
            return
        self._encoder = made
        self._task = loop.create_task(self._run(made))
        self._task.add_done_callback(self._ended)

    def push(self, shots: list[RawFrame]) -> None:
        self._raw.extend(shots)
        while len(self._raw) > self._raw_max:
            self._drop()
        self._changed.set()

    def preview(self, shots: list[RawFrame]) -> None:
        """Show them now, where nothing else waits to be shown: they are made of a chunk that is not done."""
        if not self._raw and shots and shots[0].epoch >= self._epoch:
            self.push(shots)

    def skip(self, frames: int) -> None:
        """So many were made of a world that was redirected meanwhile."""
        self._counters.superseded += frames

    def drop_before(self, epoch: int) -> bool:
        """Frames of older epochs are never shown again; True when some were waiting."""
        self._epoch = max(self._epoch, epoch)
        current = [shot for shot in self._raw if shot.epoch >= self._epoch]
        dropped = len(self._raw) - len(current)
        self._counters.superseded += dropped
        self._raw = deque(current)
        return dropped > 0

    def go_on(
        self, frame: int, pts: int, at: float, picture: npt.NDArray[np.uint8] | None, chunk: int, epoch: int
    ) -> None:
        """Continue a show that began elsewhere: its next frame is `frame`, and its last one had `pts`, shown at `at`.

        `picture`: what stands on the screens, for who joins.
        """
        if frame > self._frames:
            self._frames, self._last_pts, self._last_at = frame, pts, at
            self._playout.origin = at - pts / TICKS
        if picture is not None and self._last is None:
            still = Timings(wait_us=0, step_us=0, decode_us=0, encode_us=0)
            self._last = RawFrame(picture, at, chunk, epoch, 0, 0, (), at, still)

    def show_in(self, mosaic: Mosaic, place: int) -> None:
        """From now on frames are parts of a picture; in place 0 they stay events, with all parts in them."""
        self._mosaic, self._place = mosaic, place
        if self._last is not None:
            mosaic.put(place, self._last.picture)
        if place == 0:
            mosaic.shown = (*self.shown, self._last_at)

    def show_alone(self) -> None:
        """The whole picture is this world's again: numbers and times go on behind what was shown."""
        mosaic, self._mosaic = self._mosaic, None
        if mosaic is not None and self._place > 0:
            self.go_on(*mosaic.shown, None, 0, 0)
        self._place = 0
        self.request_key(joined=True)

    def request_key(self, joined: bool) -> None:
        self._gate.request(joined, self._clock.now())
        self._changed.set()

    def set_bitrate(self, kbps: int) -> None:
        if self._encoder is not None:
            self._encoder.set_bitrate(kbps)

    async def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._encoder = None
        self._raw.clear()

    async def _run(self, encoder: H264Encoder) -> None:
        while True:
            shot = await self._take()
            if self._mosaic is not None and self._place > 0:
                await self._show_part(shot)
                continue
            self._last_pts = max(self._playout.pts(shot.at), self._last_pts + 1)
            picture, encoded, seconds = await self._encode(encoder, shot)
            await asyncio.sleep(max(0.0, shot.at - self._clock.now()))
            if shot.epoch < self._epoch:
                self._counters.superseded += 1
                self._gate.broken()
            else:
                self._show(shot, picture, encoded, seconds)

    async def _show_part(self, shot: RawFrame) -> None:
        """Whoever leads shows it with its next frame."""
        await asyncio.sleep(max(0.0, shot.at - self._clock.now()))
        if self._mosaic is not None:
            self._mosaic.put(self._place, shot.picture)
            self._last, self._last_at = shot, self._clock.now()

    def _whole(self, shot: RawFrame) -> npt.NDArray[np.uint8]:
        """On a thread of the encoders."""
        mosaic = self._mosaic
        if mosaic is None:
            return shot.picture
        mosaic.put(self._place, shot.picture)
        return mosaic.picture()

    async def _take(self) -> RawFrame:
        """The next frame once it is time to encode it; the last one again when a key frame is wanted in a still."""
        while True:
            now = self._clock.now()
            for _ in range(sum(1 for shot in self._raw if shot.at - self._encoding.conservative <= now) - DUE_MAX):
                self._drop()
            if self._raw and self._raw[0].at - self._early <= now:
                return self._raw.popleft()
            if self._raw:
                await self._changed.wait(self._raw[0].at - self._early - now)
            elif self._last is not None and self._gate.wanted and self._last.epoch >= self._epoch:
                if now - self._last_at > 2 * self._interval and self._gate.opens(now):
                    return replace(self._last, at=now, took=None)
                await self._changed.wait(self._interval)
            else:
                await self._changed.wait()

    async def _encode(self, encoder: H264Encoder, shot: RawFrame) -> tuple[npt.NDArray[np.uint8], EncodedFrame, float]:
        """What was encoded, with all that stands beside it, and the seconds it took."""
        started = self._clock.now()
        key = self._gate.opens(started)
        loop = asyncio.get_running_loop()

        def work() -> tuple[npt.NDArray[np.uint8], EncodedFrame]:
            picture = self._whole(shot)
            return picture, encoder.encode(picture, self._last_pts, key)

        picture, encoded = await loop.run_in_executor(self._threads, work)
        seconds = self._clock.now() - started
        self._encoding.observe(seconds)
        if shot.took is not None:
            self._made(shot.took + seconds)
        if encoded.key:
            self._gate.made(started)
        return picture, encoded, seconds

    def _show(self, shot: RawFrame, picture: npt.NDArray[np.uint8], encoded: EncodedFrame, seconds: float) -> None:
        self._last, self._last_at = shot, self._clock.now()
        frame = Frame(
            session=self._session,
            frame=self._frames,
            chunk=shot.chunk,
            epoch=shot.epoch,
            pts=self._last_pts,
            key=encoded.key,
            data=encoded.data,
            input_seq=shot.input_seq,
            prompt_version=shot.prompt_version,
            controls=shot.controls,
            begun=shot.begun,
            timings=msgspec.structs.replace(shot.timings, encode_us=round(seconds * 1e6)),
            preview=shot.preview,
        )
        self._frames += 1
        self._counters.frames += 1
        if self._mosaic is not None:
            self._mosaic.shown = (*self.shown, self._last_at)
        self._emit(frame)
        self._shown(picture, frame)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._failed(problem)

    def _drop(self) -> None:
        self._raw.popleft()
        self._counters.dropped += 1
