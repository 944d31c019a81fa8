"""A session's screen: when its chunks are due to be shown in time, and what becomes of the frames they bring.

    due -> (conditions, steps) -> take -> playout clock -> show -> Frame events

Safety before a deadline and what others' steps are allowed to take are learnt here, from how late chunks were.
"""

from collections.abc import Callable

from ...models.contract.loop import Outcome
from .. import api
from ..card import CardRuntime
from ..output.playout import Margin, Playout
from ..output.publisher import FramePublisher
from ..output.raw import ring_for
from ..services import Services
from .chunk import EngineChunk
from .resume_state import ResumeState
from .world import SessionWorld


class Pacer:
    """`failed` hears why nothing can be shown any more."""

    def __init__(
        self,
        opening: api.Open,
        served: CardRuntime,
        services: Services,
        steps: int,
        emit: Callable[[api.Event], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        frame, spec = served.loaded.card.frame, services.spec
        self._session, self._steps, self._emit = opening.session, steps, emit
        self._served, self._services = served, services
        self._ahead = opening.latency_class is not api.LatencyClass.INTERACTIVE
        self._margin = Margin(spec.margin_low, spec.margin_high)
        self.playout = Playout(frame.fps, frame.per_chunk, services.clock.now())
        self.show = FramePublisher(
            self._session,
            frame,
            ring_for(opening, frame, services.raw),
            services.clock,
            self.playout,
            services.encoders,
            served.encoding,
            served.leads[steps].observe,
            emit,
            failed,
        )

    async def open(self, kbps: int = 0) -> None:
        """`kbps` 0: what the engine starts with."""
        frame, services = self._served.loaded.card.frame, self._services
        await self.show.open(lambda: services.encoder(frame, kbps or services.spec.kbps, services.spec.kbps_max))

    def due(self, after: int = 0) -> float:
        """When to ask for the conditions of the chunk that begins next, or of one `after` it."""
        return self.playout.due(self._lead, self.show.lead, self._ahead, after)

    @property
    def latest_start(self) -> float:
        """When the chunk that begins next has to start its first step."""
        return self.playout.coming - self.show.lead - self._served.chunk_price(self._steps)

    def restart(self) -> None:
        """Lay the playout clock anew from now."""
        self.playout.restart(self._services.clock.now(), self._lead)

    def go_on(self, past: ResumeState, world: SessionWorld, epoch: int) -> None:
        """Continue what was shown before the session slept or came here."""
        self.show.go_on(past.frame, past.pts, past.at, world.picture, world.number - 1, epoch)
        self.restart()

    def redirect(self, epoch: int) -> None:
        """Frames of older epochs are never shown again."""
        if self.show.drop_before(epoch):
            self.playout.restart(self._services.clock.now(), self._lead, self.show.last_shown)

    def take(self, chunk: EngineChunk, outcome: Outcome[object], epoch: int) -> None:
        """A finished chunk; says so. Of an epoch before `epoch` nothing is shown."""
        now, counters, served = self._services.clock.now(), self._served.counters, self._served
        served.finished(self._steps, chunk.steps, chunk.device_seconds)
        ready = now + self.show.usual
        late = ready - chunk.deadline
        late_us, missed = max(0, round(late * 1e6)), late - self.playout.absorbs
        counters.chunks_done += 1
        counters.chunks_late += late_us > served.absorbed_us
        self._margin.finished(missed > 0)
        if not self._ahead:  # others are made ahead of their time: what they wait teaches nothing
            served.allowance.finished(missed, chunk.waited)
        self._emit(chunk.done(self._session, outcome.digest, late_us))
        if chunk.conditions.epoch < epoch:
            self.playout.pending = False
            self.show.skip(len(outcome.frames))
            return
        times = self.playout.place(ready, len(outcome.frames))
        self.show.push(chunk.shots(outcome.frames, times, now - chunk.asked - chunk.waited))

    @property
    def _lead(self) -> float:
        """From conditions to the first frame's playout time."""
        return self._served.lead(self._steps, self.show.lead) + self._margin.value
