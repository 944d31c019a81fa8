"""One session inside the engine: asks for conditions just in time, drives the chunk, hands its frames to the show.

Knows neither other sessions nor viewers. Every way a chunk can end (done, cancelled, fault) comes back through `_over`.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Any

from ...models.contract.loop import Outcome
from .. import api
from ..caches.pools import UnknownFeature
from ..drive import BadFrames, Scope, Superseded, drive_chunk
from ..served import ServedCard
from ..shared import Shared
from ..showing.playout import Margin, Playout
from ..showing.raw import ring_for
from ..showing.show import Show
from .checkpoint import Checkpoints
from .chunk import Chunk
from .past import Past
from .phase import Phase
from .prompts import Prompts
from .sleep import Sleep
from .ticketing import Ticketing
from .world import World

log = logging.getLogger(__name__)

FAULTS_IN_A_ROW = 2


class Live:
    """See the module docstring. `gone` is set once everything it held has been given back."""

    def __init__(
        self,
        opening: api.Open,
        served: ServedCard,
        shared: Shared,
        emit: Callable[[api.Event], None],
        released: "Callable[[Live], None]",
        fits: "Callable[[Live], bool]",
    ) -> None:
        card, spec, now = served.loaded.card, shared.spec, shared.clock.now()
        self.session, self.latency_class = opening.session, opening.latency_class
        self.world, self.gone = World(served, opening), asyncio.Event()
        self.steps, self.served = self.world.steps, served
        self._shared, self._events, self._released = shared, emit, released
        self._scope = Scope(shared.scope)
        self._margin = Margin(spec.margin_low, spec.margin_high)
        self._playout = Playout(card.frame.fps, card.frame.per_chunk, now)
        self._show = Show(
            self.session,
            card.frame,
            ring_for(opening, card.frame, shared.raw),
            shared.clock,
            self._playout,
            shared.encoders,
            served.encoding,
            served.leads[self.steps].observe,
            self._emit,
            lambda problem: self._fault("encode_failed", repr(problem), halt=True),
        )
        self._prompts = Prompts(self.session, served, shared, self._scope, self._emit)
        self._checkpoints = Checkpoints(self.world, shared, self._scope, self._prompts)
        self._ticketing = Ticketing(self.world, shared, self.latency_class, lambda: self._show.lead)
        self._sleep = Sleep(
            opening, self.world, shared, self._scope, self._prompts, self._ticketing.execute, lambda: fits(self)
        )
        self.phase, self._paused, self._epoch = Phase.PAUSED, False, 0
        self._chunk: Chunk | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due, self._asked, self._faults = math.inf, math.inf, 0

    @property
    def expected(self) -> float:
        """When an interactive chunk of this session will need the device; infinity while that is not known."""
        if self.phase is Phase.WAITING and self.latency_class is api.LatencyClass.INTERACTIVE:
            return self._due
        return math.inf

    @property
    def asleep(self) -> bool:
        """It holds no slot and no share of the device."""
        return not self.world.slotted

    @property
    def frames_dropped(self) -> int:
        return self._show.dropped

    @property
    def frames_superseded(self) -> int:
        return self._show.superseded

    # ---- commands --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        frame, shared = self.served.loaded.card.frame, self._shared
        await self._show.open(lambda: shared.encoder(frame, shared.spec.kbps, shared.spec.kbps_max))
        if self.phase is not Phase.CLOSED:
            self._playout.restart(self._shared.clock.now(), self._lead)
            self._arm()

    async def revive(self, past: Past, kept: bytes | None) -> None:
        """`start` for a session that lived elsewhere. A past that cannot be made again is a fatal fault."""
        frame, shared = self.served.loaded.card.frame, self._shared
        self.phase = Phase.ASLEEP
        self._paused, self._epoch = past.paused, past.epoch
        self._sleep.hold(past, kept)
        await self._show.open(lambda: shared.encoder(frame, past.kbps or shared.spec.kbps, shared.spec.kbps_max))
        if self.phase is not Phase.CLOSED and not (self.asleep and self._paused):
            self._task = asyncio.get_running_loop().create_task(self._wake())

    def obey(self, command: api.Command) -> None:
        if self.phase is Phase.CLOSED:
            return
        match command:
            case api.Begin():
                self._begin(command)
            case api.EncodePrompt():
                self._prompts.encode(command)
            case api.Supersede():
                self._supersede(command)
            case api.Pause():
                self._pause()
            case api.Resume():
                self._resume()
            case api.RequestKey():
                self._show.request_key(command.joined)
            case api.SetBitrate():
                self._show.set_bitrate(command.kbps)
            case api.Close():
                self.close()

    def close(self) -> None:
        """Nothing is emitted any more; what it holds comes back at the next step boundary (`gone`)."""
        if self.phase is Phase.CLOSED:
            return
        self._stop_timer()
        self.phase = Phase.CLOSED
        self._scope.cancel()
        self._shared.dispatcher.withdraw()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._release())

    def _begin(self, command: api.Begin) -> None:
        conditions = command.conditions
        if self.phase is not Phase.DUE or command.chunk != self.world.number or conditions.epoch < self._epoch:
            self._emit(api.ChunkCancelled(self.session, command.chunk, conditions.epoch))
            if self.phase is Phase.DUE:
                self._arm_at(self._shared.clock.now() + self._playout.interval)
            return
        self._epoch = conditions.epoch
        now = self._shared.clock.now()
        self._playout.begun(now - self._due)
        self.phase = Phase.RUNNING
        deadline = self._playout.next
        latest_start = deadline - self._show.lead - self.served.chunk_price(self.steps)
        self._chunk = Chunk(self.world.number, conditions, Scope(self._scope), now, deadline, latest_start)
        self._task = asyncio.get_running_loop().create_task(self._run(self._chunk))

    def _supersede(self, command: api.Supersede) -> None:
        self._epoch = max(self._epoch, command.epoch)
        if self._show.drop_before(self._epoch):
            self._playout.restart(self._shared.clock.now(), self._lead, self._show.last_shown)
        if command.restart:
            self.world.restart(command.epoch, command.seed, command.opening)
        if self._chunk is not None and self._chunk.conditions.epoch < self._epoch:
            self._chunk.scope.cancel()
            self._shared.dispatcher.withdraw()
        if self.phase not in (Phase.RUNNING, Phase.ASLEEP):
            self.world.forget()
        if self.phase is Phase.WAITING:
            self._arm()

    def _pause(self) -> None:
        self._paused = True
        if self.phase in (Phase.WAITING, Phase.DUE):
            self._stand_still()

    def _stand_still(self) -> None:
        self._stop_timer()
        self.phase = Phase.PAUSED
        self._timer = asyncio.get_running_loop().call_later(self._shared.spec.sleep_after, self._doze)

    def _doze(self) -> None:
        if self.phase is Phase.PAUSED and self._task is None:
            self.phase = Phase.ASLEEP
            self._task = asyncio.get_running_loop().create_task(self._fall_asleep())

    def _resume(self) -> None:
        self._paused = False
        self._faults = 0
        if self.phase is Phase.PAUSED:
            self._playout.restart(self._shared.clock.now(), self._lead)
            self._arm()
        elif self.phase is Phase.ASLEEP and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._wake())

    # ---- asking ----------------------------------------------------------------------------------------------------

    @property
    def _lead(self) -> float:
        """From conditions to the first frame's playout time."""
        return self.served.lead(self.steps, self._show.lead) + self._margin.value

    def _arm(self) -> None:
        if self._paused:
            self._stand_still()
            return
        ahead = self.latency_class is not api.LatencyClass.INTERACTIVE
        self._arm_at(self._playout.due(self._lead, self._show.lead, ahead))

    def _arm_at(self, due: float) -> None:
        self._stop_timer()
        self.phase = Phase.WAITING
        now = self._shared.clock.now()
        self._due, self._asked = due, max(due, now)
        self._timer = asyncio.get_running_loop().call_later(self._asked - now, self._ask)

    def _ask(self) -> None:
        self.phase = Phase.DUE
        self._shared.dispatcher.nudge()
        self._emit(api.ChunkDue(self.session, self.world.number, self._playout.next))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    # ---- one chunk -------------------------------------------------------------------------------------------------

    async def _run(self, chunk: Chunk) -> None:
        """Drive one chunk; whatever happens to it ends here."""
        frame = self.served.loaded.card.frame
        try:
            ask = self.world.ask(chunk.conditions, self._shared.features)
            outcome = await drive_chunk(
                self.served.loaded.loop,
                ask,
                self.world.writes,
                lambda plan, view: self._ticketing.execute(chunk, plan, view),
                chunk.scope,
                frame,
            )
        except Superseded:
            self.served.counters.chunks_cancelled += 1
            self._emit(api.ChunkCancelled(self.session, chunk.number, chunk.conditions.epoch))
        except BadFrames as problem:
            self._fault("bad_frames", str(problem))
        except UnknownFeature as problem:
            self._fault("unknown_prompt", f"no feature {problem.key}: encode the prompt again")
        except Exception as problem:
            log.exception("chunk %d of session %s failed", chunk.number, self.session)
            self._fault("step_failed", f"{type(problem).__name__}: {problem}")
        else:
            self._finish(chunk, outcome)
        await self._over()

    async def _fall_asleep(self) -> None:
        if not await self._sleep.fall() or self.phase is Phase.CLOSED:
            await self._over()
            return
        self._task = None
        if not self._paused:
            self._resume()

    async def _wake(self) -> None:
        """Be again what was held in sleep, here or by a worker that ended."""
        try:
            past = await self._sleep.wake()
        except Superseded:
            pass
        except Exception as problem:
            log.exception("session %s cannot be made again", self.session)
            self._fault("lost", f"{type(problem).__name__}: {problem}", halt=True)
        else:
            self._show.go_on(past.frame, past.pts, past.at, self.world.picture, self.world.number - 1, self._epoch)
            self._playout.restart(self._shared.clock.now(), self._lead)
        await self._over()

    def _finish(self, chunk: Chunk, outcome: Outcome[Any]) -> None:
        now, counters = self._shared.clock.now(), self.served.counters
        self.world.advanced(outcome)
        self._faults = 0
        self.served.finished(self.steps, chunk.steps, chunk.device_seconds)
        ready, epoch = now + self._show.usual, chunk.conditions.epoch
        late_us, missed = max(0, round((now - chunk.deadline) * 1e6)), ready - chunk.deadline - self._playout.absorbs
        counters.chunks_done += 1
        counters.chunks_late += late_us > 0
        self._margin.finished(missed > 0)
        self.served.allowance.finished(missed, chunk.waited)
        self._emit(api.ChunkDone(self.session, chunk.number, epoch, outcome.digest, late_us, chunk.timings()))
        times = self._playout.place(ready, len(outcome.frames_FHWC))
        self._show.push(chunk.shots(outcome.frames_FHWC, times, now - self._asked - chunk.waited))

    async def _over(self) -> None:
        """A boundary between chunks: nothing of this session is on the device."""
        self._chunk = None
        if self.phase is Phase.CLOSED:
            await self._release()
            return
        self._task = None
        self.world.forget()
        self._arm()
        self._checkpoints.boundary(self._due)

    def _fault(self, code: str, detail: str, halt: bool = False) -> None:
        self._faults += 1
        self.served.counters.faults += 1
        fatal = halt or self._faults >= FAULTS_IN_A_ROW
        if fatal:
            self._pause()
        self._emit(api.Fault(self.session, code, detail, fatal))

    async def _release(self) -> None:
        await self._show.close()
        await self._prompts.close()
        self._sleep.stir()
        await self._checkpoints.close()
        self.world.leave_slot()
        self._released(self)
        self.gone.set()

    def _emit(self, event: api.Event) -> None:
        if self.phase is not Phase.CLOSED:
            self._events(event)
