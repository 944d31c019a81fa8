"""A session's renditions beside H264: each begins when somebody asks for it, and ends when nobody has for a while.

    shown frame -> [the newest one] -> encoder thread that gives way to all others -> event

They come after the frame they are of, so that the first rendition is never late for them. Where their thread falls
behind, raw frames are left out, never encoded ones.
"""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from ...clock import Clock
from ..api import Frame, Rendered, Rendition
from ..wakeup import Wakeup
from .encode import KeyGate, RenditionEncoder
from .playout import TICKS

ASKED_S = 5.0
"""A rendition ends so long after it was last asked for: who watches asks every second."""

NICENESS = 5
"""Of the thread that encodes a second time: worlds and the first encoder come before it."""

log = logging.getLogger(__name__)


def rendition_threads() -> ThreadPoolExecutor:
    """For all sessions of an engine."""
    return ThreadPoolExecutor(1, "renditions", _give_way)


def _give_way() -> None:
    """Only Linux knows this of single threads."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """A frame that was shown at `at`, and the picture it was made of."""

    picture: npt.NDArray[np.uint8]
    frame: Frame
    at: float


@dataclass(frozen=True, slots=True)
class Setting:
    """What the renditions of one session share. `make(rendition, kbps)` opens an encoder, on one of `threads`."""

    session: str
    interval: float
    clock: Clock
    threads: Executor
    make: Callable[[Rendition, int], RenditionEncoder]
    emit: Callable[[Rendered], None]


class Renditions:
    """Of one session. `kbps(rendition)`: what one starts with unless told."""

    def __init__(self, setting: Setting, kbps: Callable[[Rendition], int]) -> None:
        self._setting, self._kbps = setting, kbps
        self._made: dict[Rendition, _Rendition] = {}
        self._last: ShownFrame | None = None
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def made(self) -> frozenset[Rendition]:
        return frozenset(self._made)

    def shown(self, picture: npt.NDArray[np.uint8], frame: Frame) -> None:
        """The session has shown a frame."""
        now, first = self._setting.clock.now(), self._last is None
        self._last = ShownFrame(picture, frame, now)
        for each in list(self._made.values()):
            if first:  # nobody could ask again before there was a picture
                each.asked_at = now
            if now - each.asked_at > ASKED_S:
                self._end(each)
            else:
                each.push(self._last)

    def request_key(self, rendition: Rendition, joined: bool) -> None:
        self._begun(rendition, self._kbps(rendition)).request_key(joined)

    def set_bitrate(self, rendition: Rendition, kbps: int) -> None:
        self._begun(rendition, kbps).set_bitrate(kbps)

    def drop_before(self, epoch: int) -> None:
        """Frames of older epochs are never shown again."""
        if self._last is not None and self._last.frame.epoch < epoch:
            self._last = None
        for each in self._made.values():
            each.drop_before(epoch)

    async def close(self) -> None:
        """Nothing may be asked for afterwards."""
        for each in list(self._made.values()):
            self._end(each)
        if self._ending:
            await asyncio.wait(self._ending)

    def _begun(self, rendition: Rendition, kbps: int) -> "_Rendition":
        made = self._made.get(rendition)
        if made is None:
            made = _Rendition(self._setting, rendition, kbps)
            made.task.add_done_callback(lambda task: self._ended(rendition, task))
            self._made[rendition] = made
            if self._last is not None:
                made.push(self._last)
        made.asked_at = self._setting.clock.now()
        return made

    def _end(self, made: "_Rendition") -> None:
        del self._made[made.rendition]
        self._ending.add(made.task)
        made.task.cancel()

    def _ended(self, rendition: Rendition, task: "asyncio.Task[None]") -> None:
        """One that fails begins anew when somebody asks again; the session goes on."""
        self._ending.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            log.error("a rendition failed: %s", rendition, exc_info=problem)
            if (made := self._made.get(rendition)) is not None and made.task is task:
                del self._made[rendition]


class _Rendition:
    """One encoder, and the newest frame that waits for it."""

    def __init__(self, setting: Setting, rendition: Rendition, kbps: int) -> None:
        self._setting, self.rendition = setting, rendition
        self._gate, self._changed = KeyGate(), Wakeup()
        self._waiting: ShownFrame | None = None
        self._last: ShownFrame | None = None
        self._encoder: RenditionEncoder | None = None
        self._kbps, self._epoch, self._pts = kbps, 0, -1
        self.asked_at = setting.clock.now()
        self.task = asyncio.get_running_loop().create_task(self._run())

    def push(self, shown: ShownFrame) -> None:
        self._waiting = shown
        self._changed.set()

    def request_key(self, joined: bool) -> None:
        self._gate.request(joined, self._setting.clock.now())
        self._changed.set()

    def set_bitrate(self, kbps: int) -> None:
        self._kbps = kbps
        if self._encoder is not None:
            self._encoder.set_bitrate(kbps)

    def drop_before(self, epoch: int) -> None:
        self._epoch = max(self._epoch, epoch)

    async def _run(self) -> None:
        loop, of = asyncio.get_running_loop(), self._setting
        encoder = await loop.run_in_executor(of.threads, of.make, self.rendition, self._kbps)
        encoder.set_bitrate(self._kbps)
        self._encoder = encoder
        while True:
            shown = await self._take()
            self._last = shown
            self._pts = max(shown.frame.pts, self._pts + 1)
            started = of.clock.now()
            key = self._gate.opens(started)
            encoded = await loop.run_in_executor(of.threads, encoder.encode, shown.picture, self._pts, key)
            if encoded.key:
                self._gate.made(started)
            if shown.frame.epoch < self._epoch:
                self._gate.broken()
                continue
            took_us = round((of.clock.now() - started) * 1e6)
            timings = msgspec.structs.replace(shown.frame.timings, encode_us=took_us)
            frame = msgspec.structs.replace(
                shown.frame, pts=self._pts, key=encoded.key, data=encoded.data, timings=timings
            )
            of.emit(Rendered(of.session, self.rendition, frame))

    async def _take(self) -> ShownFrame:
        """The newest frame; the last one again when a key frame is wanted in a still."""
        while True:
            if (waiting := self._waiting) is not None:
                self._waiting = None
                if waiting.frame.epoch >= self._epoch:
                    return waiting
            last, now = self._last, self._setting.clock.now()
            if last is None or last.frame.epoch < self._epoch or not self._gate.wanted:
                await self._changed.wait()
            elif now - last.at > 2 * self._setting.interval and self._gate.opens(now):
                pts = last.frame.pts + round((now - last.at) * TICKS)
                return ShownFrame(last.picture, msgspec.structs.replace(last.frame, pts=pts), now)
            else:
                await self._changed.wait(self._setting.interval)
