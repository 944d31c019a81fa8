"""A session's pace: when its chunks are due to be shown in time, and what becomes of the frames they bring.

    due -> begin -> (steps) -> take -> playout clock -> publisher -> Frame events

Safety before a deadline and what others' steps are allowed to take are learnt here, from how late chunks were.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ...models.contract.loop import Outcome, Preview
from .. import api
from ..output.encode import H264Encoder, RenditionEncoder
from ..output.mosaic import Mosaic
from ..output.playout import Playout
from ..output.publisher import FramePublisher
from ..output.renditions import Renditions, Setting
from ..output.vp8 import Vp8Encoder
from .chunk import EngineChunk
from .context import SessionContext
from .resume_state import ResumeState
from .world import SessionWorld

LOW_SHARE = 0.25
"""Of the bitrate, for a quarter of the pixels."""
MARGIN_LOW, MARGIN_HIGH = 0.0003, 0.002
"""Seconds: bounds of the safety before a deadline."""
WIDER, NARROWER = 0.0002, 0.00003
"""Seconds by which a late chunk widens it, and a punctual one narrows it."""


class Pacer:
    """`failed` hears why nothing can be shown any more."""

    def __init__(self, context: SessionContext, failed: Callable[[BaseException], None]) -> None:
        world, services = context.world, context.services
        served, frame = world.served, world.served.loaded.card.frame
        self._session, self._steps, self._emit = context.session, world.steps, context.emit
        self._world, self._served, self._services, self._counters = world, served, services, context.counters
        self._encoding = served.encoding
        self._kbps = 0
        self.last: api.ChunkDone | None = None
        """The last finished chunk."""
        self._ahead = context.opening.latency_class is not api.LatencyClass.INTERACTIVE
        self._margin = MARGIN_HIGH
        self._playout = Playout(frame.fps, frame.per_chunk, services.clock.now())
        self._renditions = Renditions(
            Setting(
                self._session,
                1.0 / frame.fps,
                services.clock,
                services.rendition_encoders,
                self._encoder_of,
                context.emit,
            ),
            self._kbps_of,
        )
        self._publisher = FramePublisher(
            self._session,
            frame,
            services.clock,
            self._playout,
            services.encoders,
            served.encoding,
            served.leads[world.steps].observe,
            context.emit,
            failed,
            context.counters,
            self._renditions.shown,
        )

    async def open(self, kbps: int = 0) -> None:
        """`kbps` 0: what the engine starts with."""
        frame, services, self._kbps = self._served.loaded.card.frame, self._services, kbps
        await self._publisher.open(lambda: services.encoder(frame, kbps or services.spec.kbps, services.spec.kbps_max))

    def due(self, after: int = 0) -> float:
        """When to ask for the conditions of the chunk that begins next, or of one `after` it."""
        return self._playout.due(self._lead, self._encoding.conservative, self._ahead, after)

    @property
    def deadline(self) -> float:
        """Playout time of the first frame of the chunk that begins next."""
        return self._playout.coming

    @property
    def interval(self) -> float:
        """Seconds from frame to frame."""
        return self._playout.interval

    def begin(self, delay: float) -> tuple[float, float, float]:
        """A chunk begins: its conditions came `delay` after they were due. Its deadline, when it must be made so that
        its first frame is encoded by then, and when its first step has to start for that.
        """
        deadline = self._playout.begun(delay)
        made_by = deadline - self._encoding.conservative
        return deadline, made_by, made_by - self._served.chunk_price(self._steps)

    def released(self) -> None:
        """The chunk that begins next comes after one whose pictures are still to be placed."""
        self._playout.pending = True

    def restart(self) -> None:
        """Lay the playout clock anew from now."""
        self._playout.restart(self._services.clock.now(), self._lead)

    def go_on(self, resume_state: ResumeState, world: SessionWorld, epoch: int) -> None:
        """Continue what was shown before the session was suspended or came here."""
        progress = resume_state.progress
        self._publisher.go_on(progress.frame, progress.pts, resume_state.at, world.picture, world.number - 1, epoch)
        self.restart()

    def part_from(self, pacer: "Pacer", picture: npt.NDArray[np.uint8] | None, chunk: int, epoch: int) -> None:
        """Continue what another world has shown so far."""
        frame, pts = pacer._publisher.shown
        self._publisher.go_on(frame, pts, pacer._publisher.last_shown, picture, chunk, epoch)
        self.restart()

    def show_in(self, mosaic: Mosaic, place: int) -> None:
        self._publisher.show_in(mosaic, place)

    def show_alone(self) -> None:
        self._publisher.show_alone()

    def request_key(self, joined: bool, rendition: api.Rendition = api.Rendition.H264) -> None:
        if rendition is api.Rendition.H264:
            self._publisher.request_key(joined)
        else:
            self._renditions.request_key(rendition, joined)

    def set_bitrate(self, kbps: int, rendition: api.Rendition = api.Rendition.H264) -> None:
        if rendition is api.Rendition.H264:
            self._kbps = kbps
            self._publisher.set_bitrate(kbps)
        else:
            self._renditions.set_bitrate(rendition, kbps)

    async def close(self) -> None:
        """Nothing is shown any more."""
        await self._publisher.close()
        await self._renditions.close()

    def progress(self, epoch: int, chunk: int, paused: bool) -> api.Progress:
        """How far the session is; what is not of its pace is handed in."""
        frame, pts = self._publisher.shown
        return api.Progress(epoch, chunk, paused, self._kbps, frame, pts)

    def redirect(self, epoch: int) -> None:
        """Frames of older epochs are never shown again."""
        self._renditions.drop_before(epoch)
        if self._publisher.drop_before(epoch):
            self._playout.restart(self._services.clock.now(), self._lead, self._publisher.last_shown)

    def take(self, chunk: EngineChunk, outcome: Outcome[object], epoch: int) -> None:
        """A finished chunk; says so. Of an epoch before `epoch` nothing is shown."""
        now, served = self._services.clock.now(), self._served
        ready = now + self._encoding.mean
        lateness = ready - chunk.deadline
        missed = lateness - self._playout.late_after
        late = missed > 0
        self._margin = margin_after(self._margin, late)
        seconds = [share / self._world.work for share in chunk.shares]
        # One that is made ahead of its time teaches nothing by what it waits.
        served.finished(self._steps, chunk.steps, seconds, None if self._ahead else missed, chunk.waited)
        self.last = chunk.done(self._session, outcome.latents, max(0, round(lateness * 1e6)), late)
        self._counters.chunks += 1
        self._counters.late += late
        self._emit(self.last)
        if chunk.conditions.epoch < epoch:
            self._playout.pending = False
            self._publisher.skip(len(outcome.frames))
            return
        times = self._playout.place(ready, len(outcome.frames))
        self._publisher.push(chunk.shots(outcome.frames, times, now - chunk.asked - chunk.waited))

    def preview(self, chunk: EngineChunk, preview: Preview) -> None:
        """A part of a chunk that is not done: shown at once, without moving the playout clock."""
        now = self._services.clock.now()
        times = [now + index * self._playout.interval for index in range(len(preview.frames))]
        self._publisher.preview(chunk.shots(preview.frames, times, None, preview=True))

    def _encoder_of(self, rendition: api.Rendition, kbps: int) -> RenditionEncoder:
        frame, most = self._served.loaded.card.frame, self._services.spec.kbps_max
        made = H264Encoder if rendition is api.Rendition.H264_LOW else Vp8Encoder
        return made(frame, kbps, most, half=rendition.low)

    def _kbps_of(self, rendition: api.Rendition) -> int:
        """What a rendition starts with."""
        kbps = self._kbps or self._services.spec.kbps
        return round(kbps * LOW_SHARE) if rendition.low else kbps

    @property
    def _lead(self) -> float:
        """From conditions to the first frame's playout time."""
        return self._served.lead(self._steps, self._encoding.conservative) + self._margin


def margin_after(margin: float, late: bool) -> float:
    """The safety before the next deadline, in seconds: additive both ways."""
    return min(MARGIN_HIGH, max(MARGIN_LOW, margin + (WIDER if late else -NARROWER)))
