"""One session inside the engine: asks for conditions just in time, drives the chunk, hands its frames to the show.

Knows neither other sessions nor viewers. Every way a chunk can end (done, cancelled, fault) comes back through `_over`.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Any

from .. import api
from ..card import CardRuntime
from ..drive import CancelScope, Superseded
from ..services import Services
from .checkpoint import Checkpoints
from .chunk import EngineChunk
from .faults import described
from .overlap import PendingDecode, SessionOverlap
from .pacing import Pacer
from .prompts import Prompts
from .resume_state import ResumeState
from .state import SessionState
from .steps import StepSubmitter
from .suspend import Suspension
from .world import SessionWorld

log = logging.getLogger(__name__)

FAULTS_IN_A_ROW = 2


class EngineSession:
    """See the module docstring. `gone` is set once everything it held has been given back."""

    def __init__(
        self,
        opening: api.Open,
        served: CardRuntime,
        services: Services,
        emit: Callable[[api.Event], None],
        released: "Callable[[EngineSession], None]",
        fits: "Callable[[EngineSession], bool]",
    ) -> None:
        self.session, self.latency_class = opening.session, opening.latency_class
        self.world, self.gone = SessionWorld(served, opening), asyncio.Event()
        self.steps, self.served = self.world.steps, served
        self._services, self._events, self._released = services, emit, released
        self._scope = CancelScope(services.scope)
        self.screen = Pacer(opening, served, services, self.steps, self._emit, self._unshown)
        self._prompts = Prompts(self.session, served, services, self._scope, self._emit)
        self._checkpoints = Checkpoints(self.world, services, self._scope, self._prompts)
        self._ticketing = StepSubmitter(self.world, services, self.latency_class, lambda: self.screen.show.lead)
        self._sleep = Suspension(
            opening, self.world, services, self._scope, self._prompts, self._ticketing.drive, lambda: fits(self)
        )
        self.phase, self._paused, self._epoch = SessionState.PAUSED, False, 0
        self._chunk: EngineChunk | None = None
        self._pending = PendingDecode()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due, self._asked, self._faults = math.inf, math.inf, 0

    @property
    def expected(self) -> float:
        """When an interactive chunk of this session will need the device; infinity while that is not known."""
        if self.phase is SessionState.WAITING and self.latency_class is api.LatencyClass.INTERACTIVE:
            return self._due
        return math.inf

    @property
    def asleep(self) -> bool:
        """It holds no slot and no share of the device."""
        return not self.world.slotted

    # ---- commands --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        await self.screen.open()
        if self.phase is not SessionState.CLOSED:
            self.screen.restart()
            self._arm()

    async def revive(self, past: ResumeState, kept: bytes | None) -> None:
        """`start` for a session that lived elsewhere. A past that cannot be made again is a fatal fault."""
        self.phase = SessionState.ASLEEP
        self._paused, self._epoch = past.paused, past.epoch
        self._sleep.hold(past, kept)
        await self.screen.open(past.kbps)
        if self.phase is not SessionState.CLOSED and not (self.asleep and self._paused):
            self._task = asyncio.get_running_loop().create_task(self._wake())

    def obey(self, command: api.Command) -> None:
        if self.phase is SessionState.CLOSED:
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
                self.screen.show.request_key(command.joined)
            case api.SetBitrate():
                self.screen.show.set_bitrate(command.kbps)
            case api.Close():
                self.close()

    def close(self) -> None:
        """Nothing is emitted any more; what it holds comes back at the next step boundary (`gone`)."""
        if self.phase is SessionState.CLOSED:
            return
        self._stop_timer()
        self.phase = SessionState.CLOSED
        self._scope.cancel()
        self._services.dispatcher.withdraw()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._release())

    def _begin(self, command: api.Begin) -> None:
        conditions = command.conditions
        if self.phase is not SessionState.DUE or command.chunk != self.world.number or conditions.epoch < self._epoch:
            self._emit(api.ChunkCancelled(self.session, command.chunk, conditions.epoch))
            if self.phase is SessionState.DUE:
                self._arm_at(self._services.clock.now() + self.screen.playout.interval)
            return
        self._epoch = conditions.epoch
        now, screen, world = self._services.clock.now(), self.screen, self.world
        screen.playout.begun(now - self._due)
        self.phase = SessionState.RUNNING
        self._chunk = EngineChunk(
            number=world.number,
            conditions=conditions,
            scope=CancelScope(self._scope),
            begun=now,
            deadline=screen.playout.coming,
            latest_start=screen.latest_start,
            asked=self._asked,
            generation=world.generation,
        )
        self._task = asyncio.get_running_loop().create_task(self._run(self._chunk))

    def _supersede(self, command: api.Supersede) -> None:
        self._epoch = max(self._epoch, command.epoch)
        self.screen.redirect(self._epoch)
        if command.restart:
            self.world.restart(command.epoch, command.seed, command.opening)
        if self._chunk is not None and self._chunk.conditions.epoch < self._epoch:
            self._cancel(self._chunk)
        if self.phase not in (SessionState.RUNNING, SessionState.ASLEEP):
            self.world.forget()
        if self.phase is SessionState.WAITING:
            self._arm()

    def _pause(self) -> None:
        self._paused = True
        if self.phase in (SessionState.WAITING, SessionState.DUE):
            self._stand_still()

    def _stand_still(self) -> None:
        self._stop_timer()
        self.phase = SessionState.PAUSED
        self._timer = asyncio.get_running_loop().call_later(self._services.spec.sleep_after, self._doze)

    def _doze(self) -> None:
        if self.phase is SessionState.PAUSED and self._task is None:
            self.phase = SessionState.ASLEEP
            self._task = asyncio.get_running_loop().create_task(self._fall_asleep())

    def _resume(self) -> None:
        self._paused = False
        self._faults = 0
        if self.phase is SessionState.PAUSED:
            self.screen.restart()
            self._arm()
        elif self.phase is SessionState.ASLEEP and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._wake())

    # ---- asking ----------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        if self._paused:
            self._stand_still()
            return
        self._arm_at(self.screen.due())

    def _arm_at(self, due: float) -> None:
        self._stop_timer()
        self.phase = SessionState.WAITING
        now = self._services.clock.now()
        self._due, self._asked = due, max(due, now)
        self._timer = asyncio.get_running_loop().call_later(self._asked - now, self._ask)

    def _ask(self) -> None:
        self.phase = SessionState.DUE
        self._services.dispatcher.nudge()
        self._emit(api.ChunkDue(self.session, self.world.number, self.screen.playout.coming))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    # ---- one chunk -------------------------------------------------------------------------------------------------

    async def _run(self, chunk: EngineChunk) -> None:
        """Drive one chunk; whatever happens to it ends here. Its events come after those of the chunk before."""
        pending = self._pending
        ahead = SessionOverlap(
            pending, chunk.generation, self._should_go_ahead, lambda carry: self._go_ahead(chunk, carry)
        )
        try:
            outcome = await self._ticketing.drive(chunk, ahead)
        except Exception as problem:
            if not chunk.gone:
                await pending.settled()
            self._failed(chunk, problem)
            carry = None
        else:
            self._faults, carry = 0, outcome.carry
            if chunk.gone:
                self.world.pictured(chunk.number, chunk.generation, outcome)
            else:
                self.world.advanced(outcome)
            self.screen.take(chunk, outcome, self._epoch)
        if chunk.gone:
            pending.made(carry)
        else:
            await self._over()

    def _should_go_ahead(self) -> bool:
        """Whether the next chunk would begin late if it waited for the pictures of this one."""
        pictures = self.served.beside(self._services.costs, self.steps)
        if not pictures or self._paused or self._checkpoints.due:
            return False
        return self.screen.due(after=1) < self._services.clock.now() + pictures

    def _go_ahead(self, chunk: EngineChunk, carry: Any) -> None:
        self.world.go_on(carry)
        self._pending.go(chunk)
        self.screen.playout.pending = True
        self._chunk = self._task = None
        self.world.forget()
        self._arm()

    def _failed(self, chunk: EngineChunk, problem: Exception) -> None:
        """A chunk whose world has gone on is done all the same, though nobody sees it."""
        if not isinstance(problem, Superseded):
            if chunk.gone:
                self._emit(chunk.done(self.session, "", 0))
            self._fault(*described(problem, chunk.number, self.session), halt=chunk.gone)
        elif not chunk.gone:  # else the session ends
            self.served.counters.chunks_cancelled += 1
            self._emit(api.ChunkCancelled(self.session, chunk.number, chunk.conditions.epoch))

    async def _fall_asleep(self) -> None:
        await self._pending.settled()
        if not await self._sleep.fall() or self.phase is SessionState.CLOSED:
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
            if self.phase is SessionState.ASLEEP:  # and stays it, until somebody tries again
                self._task = None
                return
        else:
            self.screen.go_on(past, self.world, self._epoch)
        await self._over()

    async def _over(self) -> None:
        """A boundary between chunks: nothing of this session is on the device."""
        self._chunk = None
        if self.phase is SessionState.CLOSED:
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
            if halt and self._chunk is not None:
                self._cancel(self._chunk)
        self._emit(api.Fault(self.session, code, detail, fatal))

    def _unshown(self, problem: BaseException) -> None:
        self._fault("encode_failed", repr(problem), halt=True)

    def _cancel(self, chunk: EngineChunk) -> None:
        chunk.scope.cancel()
        self._services.dispatcher.withdraw()

    async def _release(self) -> None:
        await self._pending.settled()
        await self.screen.show.close()
        await self._prompts.close()
        self._sleep.stir()
        await self._checkpoints.close()
        self.world.leave_slot()
        self._released(self)
        self.gone.set()

    def _emit(self, event: api.Event) -> None:
        if self.phase is not SessionState.CLOSED:
            self._events(event)
