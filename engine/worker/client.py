"""`api.EngineClient` in the edge process: the engine lives in a worker process, this is its door. No tensor library.

    edge: post, open --> [socket] --> worker: Engine          worker dies or hangs: it is killed, a new one starts, and
    edge: events    <-- [socket] <-- worker: events           every session is revived from its checkpoint and its past

Sessions notice a death as one cancelled chunk and a pause of the picture.
"""

import asyncio
import itertools
import logging
import shutil
from collections.abc import Callable

import msgspec

from ...clock import Clock
from .. import api
from ..caches.store import SnapshotFolder
from ..device.history import StepHistory
from . import ipc, suspended
from .process import COMMAND, StandbyWorker, WorkerProcess
from .session_log import SessionLog
from .spec import WorkerSpec, fresh_folder

log = logging.getLogger(__name__)

AGAIN = 1.0
DEATHS_MAX = 3


class WorkerFailed(RuntimeError):
    """The worker said that it cannot serve. `theirs`: the person who started the server can put it right."""

    def __init__(self, detail: str, theirs: bool) -> None:
        super().__init__(detail)
        self.theirs = theirs


class WorkerClient:
    """Implements `api.SuspendableEngine`. Make it and call everything on one event loop.

    `folder`: where its worker keeps checkpoints and raw frames. `standby`: where the next worker comes from.
    """

    def __init__(self, serving: WorkerSpec, clock: Clock, command: tuple[str, ...] = COMMAND) -> None:
        self._clock = clock
        self.folder = fresh_folder()
        self._snapshots = SnapshotFolder(self.folder, serving.disk)
        self._boot = serving.boot(self.folder)
        self._held: dict[str, SessionLog] = {}
        self._answers: dict[int, asyncio.Future[api.Opened | api.Refused]] = {}
        self._ids = itertools.count()
        self._revivals: set[asyncio.Task[None]] = set()
        self._beat = ipc.Heartbeat(False, (), (), 0.0, 0.0)
        self._trail = StepHistory()
        self._broken: WorkerFailed | None = None
        self._child: WorkerProcess | None = None
        self.standby = StandbyWorker(
            lambda: WorkerProcess(clock, self._take, command), serving.spare_after, serving.cards
        )
        self._living: asyncio.Task[None] | None = None
        self._first = asyncio.Event()
        self._reviving = False
        self._closed = False
        self.deaths = 0

    @property
    def ready(self) -> bool:
        return self._beat.ready and not self._reviving and not self._closed

    @property
    def pid(self) -> int:
        """The process that lives now."""
        assert self._child is not None, "the worker is started"
        return self._child.pid

    async def start(self) -> None:
        """Start the worker and wait until it is warm and priced; raises `WorkerFailed` when it cannot be."""
        self._living = asyncio.get_running_loop().create_task(self._live())
        await self._first.wait()
        if self._broken is not None:
            raise self._broken

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        child = self._child
        if child is None or not self.ready:
            return api.Refused(command.session, api.RefusalReason.NOT_READY, "the worker is starting", 0, AGAIN)
        if command.session in self._held:
            detail = f"session '{command.session}' is open already"
            return api.Refused(command.session, api.RefusalReason.CONFLICT, detail, 0, AGAIN)
        held = self._held[command.session] = SessionLog(command, events, self._clock.now())
        try:
            answer = await self._ask(child, ipc.OpenRequest(next(self._ids), command))
        except BaseException:
            self.post(api.Close(command.session))
            raise
        held.opened = isinstance(answer, api.Opened)
        if isinstance(answer, api.Opened):
            held.opening = msgspec.structs.replace(command, steps=answer.steps)  # as it was let in
        elif self._held.get(command.session) is held:
            del self._held[command.session]
        return answer

    def suspend(self, session: str) -> bytes | None:
        """See `api.SuspendableEngine`."""
        held = self._held.get(session)
        if held is None or not held.opened or held.lost:
            return None
        snapshot = self._snapshots.get(session)
        return suspended.dumps(suspended.SuspendedSession(held.past(), snapshot or b""))

    async def restore(self, world: bytes, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        """See `api.SuspendableEngine`."""
        return await self.resume(suspended.loads(world), events)

    async def resume(
        self, world: suspended.SuspendedSession, events: Callable[[api.Event], None]
    ) -> api.Opened | api.Refused:
        child, now = self._child, self._clock.now()
        past = msgspec.structs.replace(world.past, at=now)
        session = past.opening.session
        if child is None or not self.ready:
            return api.Refused(session, api.RefusalReason.NOT_READY, "the worker is starting", 0, AGAIN)
        if session in self._held:
            return api.Refused(session, api.RefusalReason.CONFLICT, f"session '{session}' is open already", 0, AGAIN)
        if world.snapshot:
            self._snapshots.put(session, world.snapshot)
        self._held[session] = SessionLog.of(past, events, now)
        answer = await self._ask(child, ipc.Restore(next(self._ids), past))
        if isinstance(answer, api.Refused):
            self._held.pop(session, None)
        return answer

    def post(self, command: api.Command) -> None:
        held = self._held.get(command.session)
        if held is None or self._closed:
            return
        if isinstance(command, api.Close):
            del self._held[command.session]
        else:
            held.sent(command)
        if self._child is not None and not self._reviving:
            self._child.send(command)

    def cards(self) -> tuple[api.CardInfo, ...]:
        return self._beat.cards

    def capacity(self) -> tuple[api.Capacity, ...]:
        return self._beat.capacity

    def sessions(self) -> tuple[api.SessionInfo, ...]:
        return self._beat.sessions

    def steps(self) -> tuple[api.BatchRan, ...]:
        return self._trail.all()

    async def close(self) -> None:
        """Close every session and end the worker; returns when the process is gone."""
        if self._closed:
            return
        self._closed = True
        self._held.clear()
        if self._living is not None:
            self._living.cancel()
            await asyncio.wait([self._living])
        if self._child is not None:
            await self._child.stop()
        await self.standby.end()
        self._fail_answers("closing")
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- the worker's life -----------------------------------------------------------------------------------------

    async def _live(self) -> None:
        """Keep one worker alive for ever; give up only when the first one cannot serve."""
        while True:
            child = self._child = await self.standby.next()
            child.send(self._boot)
            await child.watch()
            await child.end()
            served, warm = self._first.is_set(), self._beat.ready
            self._bury()
            if not served:
                self._broken = self._broken or WorkerFailed("the worker ended while it was starting", theirs=False)
                self._first.set()
                return
            if not warm:
                await asyncio.sleep(AGAIN)

    def _bury(self) -> None:
        self.deaths += 1
        self._reviving = True
        self._beat = ipc.Heartbeat(False, self._beat.cards, self._beat.capacity, 0.0, 0.0)
        self._fail_answers("the worker ended")
        log.error("the worker ended; %d sessions wait for a new one", len(self._held))
        for held in [*self._held.values()]:
            for event in held.bereaved():
                held.events(event)

    def _revive_all(self, child: WorkerProcess) -> None:
        """Hand every session to the new worker; commands that came meanwhile are part of their past."""
        self._reviving = False
        for held in [*self._held.values()]:
            if held.lost:
                self._give_up(held, "its past is not known any more")
            elif held.deaths > DEATHS_MAX:
                self._give_up(held, f"{held.deaths} workers ended while they made its next chunk")
            elif held.opened:
                answer = self._ask(child, ipc.Restore(next(self._ids), held.past()))
                task = asyncio.get_running_loop().create_task(self._revived(answer, child, held))
                self._revivals.add(task)
                for command in held.unanswered():
                    child.send(command)
                task.add_done_callback(self._revivals.discard)

    async def _revived(
        self, future: "asyncio.Future[api.Opened | api.Refused]", child: WorkerProcess, held: SessionLog
    ) -> None:
        answer = await future
        if isinstance(answer, api.Refused) and child is self._child and not self._reviving:
            self._give_up(held, answer.detail)

    def _give_up(self, held: SessionLog, detail: str) -> None:
        session = held.opening.session
        if self._held.get(session) is held:
            held.events(api.Fault(session, "lost", detail, fatal=True))

    # ---- what the worker says --------------------------------------------------------------------------------------

    def _take(self, message: ipc.ToEdge) -> None:
        match message:
            case ipc.OpenReply():
                answer = self._answers.pop(message.id, None)
                if answer is not None and not answer.done():
                    answer.set_result(message.answer)
            case ipc.Heartbeat():
                self._beaten(message)
            case ipc.CheckpointKept():
                held = self._held.get(message.session)
                if held is not None:
                    held.kept(message.chunk, message.epoch)
            case ipc.Broken():
                self._broken = WorkerFailed(message.detail, message.theirs)
            case _:
                self._event(message)

    def _event(self, event: api.Event) -> None:
        held = self._held.get(event.session)
        if held is not None:
            held.heard(event, self._clock.now())
            held.events(event)

    def _beaten(self, beat: ipc.Heartbeat) -> None:
        self._beat = beat
        self._trail.extend(beat.steps)
        if not beat.ready:
            return
        self._broken = None
        self._first.set()
        self.standby.prepare()
        if self._reviving and self._child is not None:
            self._revive_all(self._child)

    def _ask(
        self, child: WorkerProcess, message: ipc.OpenRequest | ipc.Restore
    ) -> "asyncio.Future[api.Opened | api.Refused]":
        """Sent at once, so that what is posted next comes after it."""
        answer = self._answers[message.id] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda _: self._answers.pop(message.id, None))
        child.send(message)
        return answer

    def _fail_answers(self, detail: str) -> None:
        for answer in [*self._answers.values()]:
            if not answer.done():
                answer.set_result(api.Refused("", api.RefusalReason.NOT_READY, detail, 0, AGAIN))
