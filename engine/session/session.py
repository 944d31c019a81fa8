"""One session inside the engine: asks for conditions just in time, makes the chunk, hands its frames to the publisher.

    while True: awake -> ask -> make        one coroutine; commands change what it looks at and wake it (`mailbox.py`)

Knows neither other sessions nor viewers.
"""

import asyncio
import logging
import math
from collections.abc import Callable

from .. import api
from ..cancel import CancelScope, Superseded
from ..card import CardRuntime
from ..counters import Counters
from ..services import Services
from .adapters import SessionAdapters
from .checkpoint import Checkpoints
from .chunk import EngineChunk
from .chunk_progress import ChunkProgressLog
from .context import SessionContext
from .driver import ChunkDriver
from .faults import Faults
from .fork import SessionForks
from .mailbox import Mailbox
from .maker import ChunkMaker
from .pacing import Pacer
from .prompts import Prompts
from .resume_state import ResumeState
from .state import MOVES, SessionState
from .suspend import Suspension
from .world import SessionWorld

log = logging.getLogger(__name__)


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
        too_much: "Callable[[EngineSession, float], str | None]",
        resume_state: ResumeState | None = None,
        snapshot: bytes | None = None,
    ) -> None:
        self.opening, self.session, self.served = opening, opening.session, served
        self.latency_class = opening.latency_class
        self.world, self.gone, self.counters = SessionWorld(served, opening), asyncio.Event(), Counters()
        self._services, self._events, self._released = services, emit, released
        self._scope = CancelScope(services.scope)
        context = SessionContext(opening, self.world, services, self._scope, self.counters, self._emit)
        self._mailbox = Mailbox(context, (resume_state or ResumeState(opening)).progress)
        self._faults = Faults(context, self._mailbox)
        self.pacer = Pacer(context, self._encoder_failed)
        self._prompts = Prompts(context)
        self._adapters = SessionAdapters(context, lambda work: too_much(self, work))
        self._checkpoints = Checkpoints(context, self._prompts)
        portable = served.loaded.state is not None and services.store is not None
        self._driver = driver = ChunkDriver(
            self.world,
            services.dispatcher,
            self.latency_class,
            self._scope,
            services.features.get,
            ChunkProgressLog(context) if portable else None,
            self.pacer.preview,
            self.counters,
            self._adapters,
        )
        self._maker = ChunkMaker(context, driver, self.pacer, self._checkpoints, self._mailbox, self._faults)
        self._suspension = Suspension(context, self._prompts, driver, lambda: fits(self))
        self.state = SessionState.PAUSED
        if resume_state is not None:
            self.state = SessionState.SUSPENDED
            self._suspension.keep(resume_state, snapshot)
        self.forks = SessionForks(context, self._mailbox, self._prompts, self._suspension, self.pacer)
        self._due, self._asked, self._retry_at = math.inf, math.inf, 0.0
        self._task: asyncio.Task[None] | None = None
        """The session itself. `close` waits for nothing: this task gives everything back at the next boundary."""

    @property
    def steps(self) -> int:
        return self.world.steps

    @property
    def expected(self) -> float:
        """When an interactive chunk of this session will need the device; infinity while that is not known."""
        if self.state is SessionState.WAITING and self.latency_class is api.LatencyClass.INTERACTIVE:
            return self._due
        return math.inf

    @property
    def progress(self) -> api.Progress:
        """How far it is; while it is suspended, how far it was."""
        mailbox, resume_state = self._mailbox, self._suspension.resume_state
        chunk = self.world.number if resume_state is None else resume_state.progress.chunk
        return self.pacer.progress(mailbox.epoch, chunk, mailbox.paused)

    @property
    def suspended(self) -> bool:
        """It holds no slot and no share of the device."""
        return self.world.slot is None

    async def start(self) -> None:
        """Open the encoder, then live. Closed meanwhile, it only gives back what it holds (`close`)."""
        resume_state = self._suspension.resume_state
        await self.pacer.open(0 if resume_state is None else resume_state.progress.kbps)
        if self.state is not SessionState.CLOSED:
            self.pacer.restart()
            self._task = asyncio.get_running_loop().create_task(self._live())

    # ---- commands --------------------------------------------------------------------------------------------------

    def obey(self, command: api.Command) -> None:
        """Carry out a command now, as far as that is possible between two steps."""
        if self.state is SessionState.CLOSED:
            return
        match command:
            case api.Begin():
                self._begin(command)
            case api.EncodePrompt():
                self._prompts.encode(command)
            case api.SetAdapters():
                self._adapters.ask(command)
            case api.HoldPrompt():
                self._prompts.hold(command)
            case api.Supersede():
                self._supersede(command)
            case api.Pause():
                self._mailbox.pause()
            case api.Resume():
                self._faults.forgive()
                self._mailbox.resume()
            case api.RequestKey():
                self.pacer.request_key(command.joined, command.rendition)
            case api.SetBitrate():
                self.pacer.set_bitrate(command.kbps, command.rendition)
            case api.Close():
                self.close()

    def close(self) -> None:
        """Nothing is emitted any more; what it holds comes back at the next step boundary (`gone`)."""
        if self.state is SessionState.CLOSED:
            return
        self._move(SessionState.CLOSED)
        self._mailbox.close()
        if self._task is None or self._task.done():  # still opening, or broken: nobody else gives back what it holds
            self._task = asyncio.get_running_loop().create_task(self._release())

    def _begin(self, command: api.Begin) -> None:
        """The conditions of the chunk that is due; anything else is sent back, and what is due is asked for again."""
        conditions, mailbox = command.conditions, self._mailbox
        due = self.state is SessionState.DUE and not mailbox.interrupted
        if due and command.chunk == self.world.number and conditions.epoch >= mailbox.epoch:
            self._move(SessionState.RUNNING)
            mailbox.put(self._maker.begin(command, self._due, self._asked))
            return
        self._emit(api.ChunkCancelled(self.session, command.chunk, conditions.epoch))
        if due:
            self._retry_at = self._services.clock.now() + self.pacer.interval
            mailbox.interrupt()

    def _supersede(self, command: api.Supersede) -> None:
        self._mailbox.redirect(command.epoch)
        self.pacer.redirect(self._mailbox.epoch)
        if command.restart:
            self.world.restart(command.epoch, command.seed, command.first_frames)
        if self.state not in (SessionState.RUNNING, SessionState.SUSPENDED):
            self.world.begin_restart()
        if self.state is SessionState.WAITING:
            self._mailbox.interrupt()  # the playout clock may have been laid anew

    # ---- the session, as it happens --------------------------------------------------------------------------------

    async def _live(self) -> None:
        """From the first chunk until it is closed; then everything it holds is given back."""
        try:
            while True:
                await self._awake()
                if self.forks.waiting:
                    await self._part()
                chunk = await self._ask()
                if chunk is not None:
                    await self._maker.make(chunk)
        except Superseded:
            await self._release()
        except Exception as problem:
            log.exception("session %s cannot go on", self.session)
            self._faults.tell("broken", type(problem).__name__, halt=True)

    async def _part(self) -> None:
        await self._maker.settled()
        self._scope.check()
        await self.forks.carry_out()

    async def _awake(self) -> None:
        """Return when the session may ask for a chunk: its world is in a slot, and it is not paused."""
        while True:
            self._scope.check()
            if tries := self._faults.step_back():
                await self._maker.settled()
                await self._suspension.step_back(tries)
            elif self._suspension.resume_state is not None:
                await self._restore()
            elif self._mailbox.paused:
                await self._stand_still()
            else:
                return

    async def _ask(self) -> EngineChunk | None:
        """Wait until the next chunk is due, ask for its conditions and wait for them; None: no longer."""
        clock, mailbox = self._services.clock, self._mailbox
        mailbox.interrupted = False
        self._due, self._retry_at = self._retry_at or self.pacer.due(), 0.0
        self._asked = max(self._due, clock.now())
        self._move(SessionState.WAITING)
        while await mailbox.wait(self._asked - clock.now()):
            if mailbox.interrupted:
                return None
        self._move(SessionState.DUE)
        self._services.dispatcher.nudge()
        self._emit(api.ChunkDue(self.session, self.world.number, self.pacer.deadline))
        while mailbox.chunk is None and not mailbox.interrupted:
            await mailbox.wait()
        return mailbox.chunk  # begun before it was interrupted, it is made: whatever cancels it, cancels its scope

    async def _stand_still(self) -> None:
        """Paused: until somebody resumes it, for a while in its slot, then without."""
        clock, mailbox = self._services.clock, self._mailbox
        self._move(SessionState.PAUSED)
        until = clock.now() + self._services.spec.suspend_after
        while mailbox.paused and await mailbox.wait(until - clock.now()):
            await self._part()
        if mailbox.paused:
            await self._suspend()
        if not mailbox.paused and not self.suspended:
            self.pacer.restart()

    async def _suspend(self) -> None:
        self._move(SessionState.SUSPENDED)
        await self._maker.settled()
        if not await self._suspension.suspend():
            self.world.begin_restart()

    async def _restore(self) -> None:
        """Take a slot again and be what was suspended, here or by a worker that ended."""
        self._move(SessionState.SUSPENDED)
        while self._mailbox.paused and (self.suspended or self.forks.unborn):
            await self._mailbox.wait()
        if self._suspension.resume_state is None:
            return  # it was made of another one here
        try:
            resume_state = await self._suspension.restore()
        except Superseded:
            raise
        except Exception as problem:  # it stays suspended, until somebody tries again
            if self._suspension.stepped_back:
                self._faults.chunk_failed(self.progress.chunk, problem, halt=False)
                return
            log.exception("session %s cannot be restored", self.session)
            self._faults.tell("lost", f"{type(problem).__name__}: {problem}", halt=True)
        else:
            self.pacer.go_on(resume_state, self.world, self._mailbox.epoch)
            self.world.begin_restart()

    async def _release(self) -> None:
        """Give everything back, once nothing of it is on the device."""
        self.forks.give_up()
        await self._maker.settled()
        await self._driver.close()
        await self.pacer.close()
        await self._prompts.close()
        await self._adapters.close()
        self._suspension.stop_retiring()
        await self._checkpoints.close()
        self.world.leave_slot()
        self._released(self)
        self.gone.set()

    # ---- small things ----------------------------------------------------------------------------------------------

    def _encoder_failed(self, problem: BaseException) -> None:
        self._faults.tell("encode_failed", repr(problem), halt=True)

    def _move(self, state: SessionState) -> None:
        assert state in MOVES[self.state], f"a session that is {self.state} does not become {state}"
        self.state = state

    def _emit(self, event: api.Event) -> None:
        if self.state is not SessionState.CLOSED:
            self._events(event)
