"""One session inside the engine: asks for conditions just in time, makes the chunk, hands its frames to the publisher.

    while True: awake -> ask -> make        one coroutine; commands change what it looks at and wake it

Knows neither other sessions nor viewers.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Any

from .. import api
from ..cancel import CancelScope, Superseded
from ..card import CardRuntime
from ..drive import DecodeOverlap
from ..services import Services
from ..wakeup import Wakeup
from .checkpoint import Checkpoints
from .chunk import EngineChunk
from .driver import ChunkDriver
from .faults import described
from .pacing import Pacer
from .prompts import Prompts
from .resume_state import ResumeState
from .state import SessionState, move
from .suspend import Suspension
from .world import SessionWorld

log = logging.getLogger(__name__)

FAULTS_IN_A_ROW = 2


class EngineSession:
    """See the module docstring. `gone` is set once everything it held has been given back.

    A session that lived elsewhere comes with its `resume_state`, and with a snapshot if there is one.
    """

    def __init__(
        self,
        opening: api.Open,
        served: CardRuntime,
        services: Services,
        emit: Callable[[api.Event], None],
        released: "Callable[[EngineSession], None]",
        fits: "Callable[[EngineSession], bool]",
        resume_state: ResumeState | None = None,
        snapshot: bytes | None = None,
    ) -> None:
        self.session, self.latency_class = opening.session, opening.latency_class
        self.world, self.gone = SessionWorld(served, opening), asyncio.Event()
        self.steps, self.served = self.world.steps, served
        self._services, self._events, self._released = services, emit, released
        self._scope = CancelScope(services.scope)
        self.pacer = Pacer(opening, served, services, self.steps, self._emit, self._encoder_failed)
        self._prompts = Prompts(self.session, served, services, self._scope, self._emit)
        self._checkpoints = Checkpoints(self.world, services, self._scope, self._prompts)
        self._driver = ChunkDriver(
            self.world, services.dispatcher, self.latency_class, services.features.get, self.pacer.encode_lead
        )
        self._suspension = Suspension(
            opening, self.world, services, self._scope, self._prompts, self._driver, lambda: fits(self)
        )
        self.state, self._paused, self._epoch = SessionState.PAUSED, False, 0
        self._wakeup, self._interrupted, self._faults = Wakeup(), False, 0
        self._due, self._asked, self._retry_at = math.inf, math.inf, 0.0
        self._chunk: EngineChunk | None = None
        """The chunk that a redirect cancels: begun, neither released nor over."""
        self._last: EngineChunk | None = None
        self._task: asyncio.Task[None] | None = None
        self._chunk_tasks: set[asyncio.Task[None]] = set()
        if resume_state is not None:
            self.state, self._paused, self._epoch = SessionState.SUSPENDED, resume_state.paused, resume_state.epoch
            self._suspension.keep(resume_state, snapshot)

    @property
    def expected(self) -> float:
        """When an interactive chunk of this session will need the device; infinity while that is not known."""
        if self.state is SessionState.WAITING and self.latency_class is api.LatencyClass.INTERACTIVE:
            return self._due
        return math.inf

    @property
    def suspended(self) -> bool:
        """It holds no slot and no share of the device."""
        return not self.world.slotted

    # ---- commands --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the encoder, then live. Closed meanwhile, it only gives back what it holds (`close`)."""
        resume_state = self._suspension.resume_state
        await self.pacer.open(resume_state.kbps if resume_state is not None else 0)
        if self.state is not SessionState.CLOSED:
            self.pacer.restart()
            self._task = asyncio.get_running_loop().create_task(self._live())

    def obey(self, command: api.Command) -> None:
        """Carry out a command now, as far as that is possible between two steps."""
        if self.state is SessionState.CLOSED:
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
                self._paused, self._faults = False, 0
                self._wakeup.set()
            case api.RequestKey():
                self.pacer.request_key(command.joined)
            case api.SetBitrate():
                self.pacer.set_bitrate(command.kbps)
            case api.Close():
                self.close()

    def close(self) -> None:
        """Nothing is emitted any more; what it holds comes back at the next step boundary (`gone`)."""
        if self.state is SessionState.CLOSED:
            return
        self._move(SessionState.CLOSED)
        self._scope.cancel()
        self._services.dispatcher.withdraw()
        self._wakeup.set()
        if self._task is None or self._task.done():  # still opening, or broken: nobody else gives back what it holds
            self._task = asyncio.get_running_loop().create_task(self._release())

    def _begin(self, command: api.Begin) -> None:
        """The conditions of the chunk that is due; anything else is sent back, and what is due is asked for again."""
        conditions, now = command.conditions, self._services.clock.now()
        due = self.state is SessionState.DUE and not self._interrupted
        if not due or command.chunk != self.world.number or conditions.epoch < self._epoch:
            self._emit(api.ChunkCancelled(self.session, command.chunk, conditions.epoch))
            if due:
                self._retry_at = now + self.pacer.interval
                self._interrupt()
            return
        self._epoch, world, last = conditions.epoch, self.world, self._last
        deadline, latest_start = self.pacer.begin(now - self._due)
        self._move(SessionState.RUNNING)
        self._chunk = EngineChunk(
            number=world.number,
            conditions=conditions,
            scope=CancelScope(self._scope),
            begun=now,
            deadline=deadline,
            latest_start=latest_start,
            asked=self._asked,
            generation=world.generation,
            overlap=DecodeOverlap(
                self._should_release,
                self._go_on,
                before=None if last is None else last.overlap,
                same_world=last is not None and last.generation == world.generation,
            ),
        )
        self._wakeup.set()

    def _supersede(self, command: api.Supersede) -> None:
        self._epoch = max(self._epoch, command.epoch)
        self.pacer.redirect(self._epoch)
        if command.restart:
            self.world.restart(command.epoch, command.seed, command.opening)
        if self._chunk is not None and self._chunk.conditions.epoch < self._epoch:
            self._cancel(self._chunk)
        if self.state not in (SessionState.RUNNING, SessionState.SUSPENDED):
            self.world.begin_restart()
        if self.state is SessionState.WAITING:
            self._interrupt()  # the playout clock may have been laid anew

    def _pause(self) -> None:
        self._paused = True
        self._interrupt()

    def _interrupt(self) -> None:
        """What is being asked for is asked for anew, or not at all."""
        self._interrupted = True
        self._wakeup.set()

    def _cancel(self, chunk: EngineChunk) -> None:
        chunk.scope.cancel()
        self._services.dispatcher.withdraw()

    # ---- the session, as it happens --------------------------------------------------------------------------------

    async def _live(self) -> None:
        """From the first chunk until it is closed; then everything it holds is given back."""
        try:
            while True:
                await self._awake()
                chunk = await self._ask()
                if chunk is not None:
                    await self._make(chunk)
        except Superseded:
            await self._release()
        except Exception as problem:
            log.exception("session %s cannot go on", self.session)
            self._fault("broken", type(problem).__name__, halt=True)

    async def _awake(self) -> None:
        """Return when the session may ask for a chunk: its world is in a slot, and it is not paused."""
        while True:
            if self._suspension.resume_state is not None:
                await self._restore()
            elif self._paused:
                await self._stand_still()
            else:
                return

    async def _ask(self) -> EngineChunk | None:
        """Wait until the next chunk is due, ask for its conditions and wait for them; None: no longer."""
        now, self._interrupted = self._services.clock.now(), False
        self._due, self._retry_at = self._retry_at or self.pacer.due(), 0.0
        self._asked = max(self._due, now)
        self._move(SessionState.WAITING)
        while await self._wait(self._asked - self._services.clock.now()):
            if self._interrupted:
                return None
        self._move(SessionState.DUE)
        self._services.dispatcher.nudge()
        self._emit(api.ChunkDue(self.session, self.world.number, self.pacer.deadline))
        while self._chunk is None and not self._interrupted:
            await self._wait()
        return self._chunk

    async def _make(self, chunk: EngineChunk) -> None:
        """Make one chunk, up to the boundary at which the next may begin: it has ended, or it was released."""
        # A task of its own: once released, the chunk decodes while the next one is made.
        task = asyncio.get_running_loop().create_task(self._run(chunk))
        self._chunk_tasks.add(task)  # asyncio keeps no task alive
        task.add_done_callback(self._chunk_tasks.discard)
        self._last = chunk
        await chunk.overlap.boundary()
        self._chunk = None
        self._scope.check()
        self.world.begin_restart()
        # A world whose last chunk is still decoding is not whole: no checkpoint of it.
        if not chunk.overlap.released and self._checkpoints.due:
            self._checkpoints.boundary(self.pacer.due())

    async def _run(self, chunk: EngineChunk) -> None:
        """Drive one chunk; whatever happens to it ends here. Order at its end: the world has moved on (`drive`), then
        its events are told, then its overlap ends and lets whoever waits for it go on.
        """
        carry = None
        try:
            outcome = await self._driver.drive(chunk)
        except Exception as problem:
            await chunk.overlap.wait_decoded()  # events of the chunk before come first
            self._failed(chunk, problem)
        else:
            self._faults, carry = 0, outcome.carry
            self.pacer.take(chunk, outcome, self._epoch)
        finally:
            chunk.overlap.end(carry)

    def _should_release(self) -> bool:
        """Whether the next chunk would begin late if it waited for the pictures of this one.

        Where there is time it waits: then its input is newer. A checkpoint that is due needs a whole world.
        """
        decode = self.served.beside(self._services.costs, self.steps)
        if not decode or self._paused or self._checkpoints.due:
            return False
        return self.pacer.due(after=1) < self._services.clock.now() + decode

    def _go_on(self, carry: Any) -> None:
        """The chunk is released: from here a redirect no longer cancels it, because it is committed."""
        self.world.go_on(carry)
        self.pacer.released()
        self._chunk = None

    async def _stand_still(self) -> None:
        """Paused: until somebody resumes it, for a while in its slot, then without."""
        self._move(SessionState.PAUSED)
        until = self._services.clock.now() + self._services.spec.sleep_after
        while self._paused and await self._wait(until - self._services.clock.now()):
            pass
        if self._paused:
            await self._suspend()
        if not self.suspended and not self._paused:
            self.pacer.restart()

    async def _suspend(self) -> None:
        self._move(SessionState.SUSPENDED)
        if self._last is not None:
            await self._last.overlap.ended()
        if not await self._suspension.suspend():
            self._scope.check()
            self.world.begin_restart()

    async def _restore(self) -> None:
        """Take a slot again and be what was suspended, here or by a worker that ended."""
        self._move(SessionState.SUSPENDED)
        while self._paused and self.suspended:
            await self._wait()
        try:
            resume_state = await self._suspension.restore()
        except Superseded:
            raise
        except Exception as problem:  # it stays suspended, until somebody tries again
            log.exception("session %s cannot be restored", self.session)
            self._fault("lost", f"{type(problem).__name__}: {problem}", halt=True)
        else:
            self.pacer.go_on(resume_state, self.world, self._epoch)
            self.world.begin_restart()

    async def _release(self) -> None:
        """Give everything back. The last chunk still reads the slot until it has ended."""
        if self._last is not None:
            await self._last.overlap.ended()
        await self.pacer.close()
        await self._prompts.close()
        self._suspension.stop_retiring()
        await self._checkpoints.close()
        self.world.leave_slot()
        self._released(self)
        self.gone.set()

    # ---- faults and small things -----------------------------------------------------------------------------------

    def _failed(self, chunk: EngineChunk, problem: Exception) -> None:
        """A chunk that was released is done all the same, though nobody sees it."""
        released = chunk.overlap.released
        if not isinstance(problem, Superseded):
            if released:
                self._emit(chunk.done(self.session, "", 0))
            self._fault(*described(problem, chunk.number, self.session), halt=released)
        elif not released:  # else the session ends
            self.served.counters.chunks_cancelled += 1
            self._emit(api.ChunkCancelled(self.session, chunk.number, chunk.conditions.epoch))

    def _fault(self, code: str, detail: str, halt: bool = False) -> None:
        """One fault is told; the second in a row, or one that must `halt`, also pauses the session."""
        self._faults += 1
        self.served.counters.faults += 1
        fatal = halt or self._faults >= FAULTS_IN_A_ROW
        if fatal:
            self._pause()
            if halt and self._chunk is not None:
                self._cancel(self._chunk)
        self._emit(api.Fault(self.session, code, detail, fatal))

    def _encoder_failed(self, problem: BaseException) -> None:
        self._fault("encode_failed", repr(problem), halt=True)

    async def _wait(self, seconds: float = math.inf) -> bool:
        """Until a command has changed something (True) or the time is over; raises `Superseded` when it was closed."""
        changed = await self._wakeup.wait(seconds)
        self._scope.check()
        return changed

    def _move(self, state: SessionState) -> None:
        self.state = move(self.state, state)

    def _emit(self, event: api.Event) -> None:
        if self.state is not SessionState.CLOSED:
            self._events(event)
