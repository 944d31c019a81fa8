"""`api.EngineClient` in the edge process: the engine lives in a worker process, this is its door. No tensor library.

    edge: post, open --> [socket] --> worker: Engine          worker dies or hangs: it is killed, a new one starts, and
    edge: events    <-- [socket] <-- worker: events           every session is restored from its checkpoint and history

Sessions notice a death as one cancelled chunk and a pause of the picture.
"""

import asyncio
import itertools
import shutil
from collections.abc import Callable
from functools import partial

import msgspec

from ...clock import Clock
from .. import api
from ..caches.tier import ASIDE
from ..device.history import StepHistory
from ..session.resume_state import ResumeState
from . import ipc, suspended
from .devices import WorkerDevice
from .forks import Forks
from .process import StandbyWorker, WorkerProcess
from .process import WorkerFailed as WorkerFailed
from .recovery import Recovery
from .replies import AGAIN, Replies
from .session_log import SessionLog
from .spec import WorkerSpec, fresh_folder, store_of

ProcessMaker = Callable[[Clock, Callable[[ipc.ToEdge], None], WorkerDevice], WorkerProcess]

KEPT_S = 3600.0
"""Seconds for which a world on the disk waits for a server that restores it."""


class WorkerClient:
    """Implements `api.SuspendableEngine`. Make it and call everything on one event loop.

    `folder`: where its worker keeps checkpoints and raw frames. `standby`: where the next worker comes from. `ended` is
    called after every death, before a new worker is there.
    """

    def __init__(self, serving: WorkerSpec, clock: Clock, process: ProcessMaker = WorkerProcess) -> None:
        self._clock, self.device = clock, serving.device
        self.ended: Callable[[], None] = lambda: None
        self.folder = fresh_folder()
        self._boot = serving.boot(self.folder)
        self._snapshots = store_of(self._boot)
        self._snapshots.sweep(clock.wall() - KEPT_S)
        self._logs: dict[str, SessionLog] = {}
        ids = itertools.count()
        self._replies, self._forks = Replies[api.Opened](ids), Forks(self._logs, self._snapshots, ids)
        self._heartbeat = ipc.Heartbeat(False, (), (), 0.0, 0.0)
        self._history = StepHistory()
        self._broken: WorkerFailed | None = None
        self._process: WorkerProcess | None = None
        another = partial(process, clock, self._take, serving.device)
        self.standby = StandbyWorker(another, serving.spare_after, serving.cards)
        self._task: asyncio.Task[None] | None = None
        self._first, self.deaths = asyncio.Event(), 0
        self._waiting = self._closed = False
        self.recovery = Recovery(self._logs, self._snapshots, self._replies, self._forks, lambda: self._serving)

    @property
    def ready(self) -> bool:
        return self._heartbeat.ready and not self._waiting and not self._closed

    @property
    def _serving(self) -> WorkerProcess | None:
        """The process that sessions are in; None while a new one is awaited."""
        return None if self._waiting else self._process

    @property
    def pid(self) -> int:
        """The process that lives now."""
        assert self._process is not None, "the worker is started"
        return self._process.pid

    async def start(self) -> None:
        """Start the worker and wait until it is warm and priced; raises `WorkerFailed` when it cannot be."""
        self._task = asyncio.get_running_loop().create_task(self._live())
        await self._first.wait()
        if self._broken is not None:
            raise self._broken

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        process = self._home_of(command.session)
        if isinstance(process, api.Refused):
            return process
        session_log = self._logs[command.session] = SessionLog(command, events, self._clock.now())
        try:
            answer = await self._replies.ask(command.session, lambda id: process.send(ipc.Request(id, command)))
        except BaseException:
            self.post(api.Close(command.session))
            raise
        session_log.opened = isinstance(answer, api.Opened)
        if isinstance(answer, api.Opened):
            session_log.opening = msgspec.structs.replace(command, steps=answer.steps)  # as it was let in
        elif self._logs.get(command.session) is session_log:
            del self._logs[command.session]
        return answer

    def suspend(self, session: str) -> bytes | None:
        """See `api.SuspendableEngine`."""
        return self._forks.aside(session)

    async def restore(
        self, world: bytes, events: Callable[[api.Event], None], near: str = ""
    ) -> api.Opened | api.Refused:
        """See `api.SuspendableEngine`. All its sessions are near each other."""
        return await self.resume(suspended.loads(world), events)

    def progress(self, session: str) -> api.Progress:
        """See `api.SuspendableEngine`."""
        session_log = self._logs.get(session)
        return api.Progress() if session_log is None else session_log.progress

    def earliest(self, session: str) -> int:
        """See `api.SuspendableEngine`."""
        return self._forks.earliest(session)

    def fork(self, session: str, into: str, chunk: int, branch: int, epoch: int, shown: str) -> bytes | None:
        """See `api.SuspendableEngine`."""
        return self._forks.before(session, into, chunk, branch, epoch, shown)

    async def part(self, fork: api.ForkSession, events: Callable[[api.Event], None]) -> api.Forked | api.Refused:
        """See `api.SuspendableEngine`."""
        process, source = self._process, self._logs.get(fork.session)
        if process is None or not self.ready or source is None or source.lost:
            return api.Refused(fork.session, api.RefusalReason.NOT_READY, "the worker is starting", 0, AGAIN)
        return await self._forks.ask(fork, events, process.send)

    def on_disk(self, session: str) -> int:
        """See `api.SuspendableEngine`."""
        return self._snapshots.chunk(session)

    def written_down(
        self,
        opening: api.Open,
        history: tuple[api.HistoryStep, ...],
        texts: tuple[str, ...],
        progress: api.Progress,
        embeddings: tuple[tuple[str, bytes], ...] = (),
        since: str = "",
    ) -> bytes:
        """See `api.SuspendableEngine`."""
        return suspended.written_down(
            ResumeState(opening, history, texts, embeddings, progress),
            since,
            self._snapshots.get(since) if since else None,
        )

    async def resume(
        self, world: suspended.SuspendedSession, events: Callable[[api.Event], None]
    ) -> api.Opened | api.Refused:
        now = self._clock.now()
        resume_state = msgspec.structs.replace(world.resume_state, at=now)
        session = resume_state.opening.session
        process = self._home_of(session)
        if isinstance(process, api.Refused):
            return process
        session_log = SessionLog.resumed(resume_state, events, now)
        if world.snapshot:
            self._forks.adopt(session_log, world)
        self._logs[session] = session_log
        answer = await self._replies.ask(session, lambda id: process.send(ipc.Request(id, resume_state)))
        if isinstance(answer, api.Refused):
            self._logs.pop(session, None)
        elif world.parts_of.startswith(ASIDE):
            self._snapshots.forget(world.parts_of)
        return answer

    def _home_of(self, session: str) -> WorkerProcess | api.Refused:
        """The process that a new session of that name would live in."""
        process = self._process
        if process is None or not self.ready:
            return api.Refused(session, api.RefusalReason.NOT_READY, "the worker is starting", 0, AGAIN)
        if session in self._logs:
            return api.Refused(session, api.RefusalReason.CONFLICT, f"session '{session}' is open already", 0, AGAIN)
        return process

    def post(self, command: api.Command) -> None:
        session_log = self._logs.get(command.session)
        if session_log is None or self._closed:
            return
        if isinstance(command, api.Close):
            del self._logs[command.session]
        else:
            session_log.sent(command)
        if isinstance(command, api.ShowBeside):
            self._forks.side_by_side(command)
        if (process := self._serving) is not None:
            process.send(command)

    def cards(self) -> tuple[api.CardInfo, ...]:
        return self._heartbeat.cards

    def capacity(self) -> tuple[api.Capacity, ...]:
        failed = self.standby.failed
        return tuple(msgspec.structs.replace(entry, starts_failed=failed) for entry in self._heartbeat.capacity)

    def sessions(self) -> tuple[api.SessionInfo, ...]:
        return self._heartbeat.sessions

    def steps(self) -> tuple[api.BatchRan, ...]:
        return self._history.all()

    async def close(self) -> None:
        """Close every session and end the worker; returns when the process is gone."""
        if self._closed:
            return
        self._closed = True
        self._logs.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._process is not None:
            await self._process.stop()
        await self.standby.end()
        self._fail_replies("closing")
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- the worker process -----------------------------------------------------------------------------------------

    async def _live(self) -> None:
        """Keep one worker alive for ever; give up only when the first one cannot serve."""
        try:
            process = await self.standby.first()
        except OSError as problem:
            self._broken = WorkerFailed(f"a worker process cannot be started: {problem.strerror}", theirs=True)
            self._first.set()
            return
        while True:
            self._process = process
            process.send(self._boot)
            await process.watch()
            await process.end()
            served, warm = self._first.is_set(), self._heartbeat.ready
            self._worker_ended()
            if not served:
                self._broken = self._broken or WorkerFailed("the worker ended while it was starting", theirs=False)
                self._first.set()
                return
            if not warm:
                await asyncio.sleep(AGAIN)
            process = await self.standby.next()

    def _worker_ended(self) -> None:
        self.deaths += 1
        self._waiting = True
        last = self._heartbeat
        self._heartbeat = ipc.Heartbeat(False, last.cards, last.capacity, 0.0, 0.0)
        self._fail_replies("the worker ended")
        self.recovery.ended(last.sessions)
        self.ended()

    # ---- what the worker says --------------------------------------------------------------------------------------

    def _take(self, message: ipc.ToEdge) -> None:
        match message:
            case ipc.Reply(id, answer):
                if not isinstance(answer, api.Forked):
                    self._replies.heard(id, answer)
                if not isinstance(answer, api.Opened):
                    self._forks.answered(id, answer, self._clock.now())
            case ipc.Heartbeat():
                self._hear_heartbeat(message)
            case ipc.CheckpointKept():
                session_log = self._logs.get(message.session)
                if session_log is not None:
                    session_log.checkpointed(message.chunk, message.epoch)
            case ipc.Broken():
                self._broken = WorkerFailed(message.detail, message.theirs)
            case _:
                self._event(message)

    def _event(self, event: api.Event) -> None:
        if (session_log := self._logs.get(event.session)) is not None:
            session_log.heard(event, self._clock.now())
            session_log.events(event)

    def _hear_heartbeat(self, heartbeat: ipc.Heartbeat) -> None:
        self._heartbeat = heartbeat
        self._history.extend(heartbeat.steps)
        if not heartbeat.ready:
            return
        self._broken = None
        self._first.set()
        self.standby.prepare()
        if self._waiting and self._process is not None:
            self._waiting = False
            self.recovery.restore_all(self._process)

    def _fail_replies(self, detail: str) -> None:
        self._forks.fail(detail)
        self._replies.fail(detail)
