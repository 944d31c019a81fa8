"""One door over several workers of this host, one per device: a session lives where most of the device is free.

A worker that dies takes only its own sessions into the pause; the others do not notice. Imports no tensor library.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from .. import api
from . import suspended
from .client import WorkerClient

LINES_MAX = 256


class WorkerPool:
    """Implements `api.EngineClient` over started or startable doors; at least one."""

    def __init__(self, workers: tuple[WorkerClient, ...]) -> None:
        if not workers:
            raise ValueError("at least one worker is needed, got none")
        self._workers = workers
        self._homes: dict[str, WorkerClient] = {}
        self._lines: dict[str, WorkerClient] = {}

    async def start(self) -> None:
        """Start all of them at once; raises `remote.WorkerFailed` of the first that cannot serve."""
        await asyncio.gather(*(worker.start() for worker in self._workers))

    @property
    def ready(self) -> bool:
        return any(worker.ready for worker in self._workers)

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        """Ask one after the other, the freest first; when nobody has room, wait in the line of one of them."""
        if command.session in self._homes:
            detail = f"session '{command.session}' is open already"
            return api.Refused(command.session, api.RefusalReason.CONFLICT, detail, 0, 0.0)
        if len(self._workers) == 1:
            return await self._open_at(self._workers[0], command, events)
        refusals: list[api.Refused] = []
        for worker in sorted(self._workers, key=_load):
            answer = await self._open_at(worker, msgspec.structs.replace(command, line=""), events)
            if isinstance(answer, api.Opened):
                self._lines.pop(command.line, None)
                return answer
            refusals.append(answer)
            if answer.reason is api.RefusalReason.CONFLICT:
                return answer  # closed while it was opening
        if not command.line or refusals[0].figures is None:
            return refusals[0]
        answer = await self._open_at(self._line_of(command.line), command, events)
        if isinstance(answer, api.Opened):
            self._lines.pop(command.line, None)
        return answer

    def suspend(self, session: str) -> bytes | None:
        """See `api.SuspendableEngine`."""
        home = self._homes.get(session)
        return None if home is None else home.suspend(session)

    async def restore(self, world: bytes, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        """See `api.SuspendableEngine`: where most of a device is free."""
        suspension, worker = suspended.loads(world), min(self._workers, key=_load)
        return await self._at(worker, suspension.resume_state.opening.session, worker.resume(suspension, events))

    def earliest(self, session: str) -> int:
        """See `api.SuspendableEngine`."""
        home = self._homes.get(session)
        return 0 if home is None else home.earliest(session)

    def fork(self, session: str, into: str, chunk: int, branch: int, epoch: int, shown: str) -> bytes | None:
        """See `api.SuspendableEngine`. Both sessions live on the same worker."""
        home = self._homes.get(session)
        return None if home is None else home.fork(session, into, chunk, branch, epoch, shown)

    async def part(self, fork: api.ForkSession, events: Callable[[api.Event], None]) -> api.Forked | api.Refused:
        """See `api.SuspendableEngine`: all on the worker of the session that is forked."""
        home = self._homes.get(fork.session)
        if home is None:
            return api.Refused(fork.session, api.RefusalReason.CONFLICT, "no such session is open", 0, 0.0)
        self._homes.update({branch.session: home for branch in fork.branches})
        answer = await home.part(fork, events)
        if isinstance(answer, api.Refused):
            for branch in fork.branches:
                self._homes.pop(branch.session, None)
        return answer

    def written_down(
        self,
        opening: api.Open,
        history: tuple[api.HistoryStep, ...],
        texts: tuple[str, ...],
        progress: api.Progress,
        embeddings: tuple[tuple[str, bytes], ...] = (),
    ) -> bytes:
        """See `api.SuspendableEngine`."""
        return self._workers[0].written_down(opening, history, texts, progress, embeddings)

    async def _open_at(
        self, worker: WorkerClient, command: api.Open, events: Callable[[api.Event], None]
    ) -> api.Opened | api.Refused:
        return await self._at(worker, command.session, worker.open(command, events))

    async def _at(
        self, worker: WorkerClient, session: str, answering: Awaitable[api.Opened | api.Refused]
    ) -> api.Opened | api.Refused:
        """The session's home is there from now on, unless it is not let in."""
        self._homes[session] = worker
        try:
            answer = await answering
        except BaseException:
            self._homes.pop(session, None)
            raise
        if isinstance(answer, api.Refused):
            self._homes.pop(session, None)
        return answer

    def _line_of(self, name: str) -> WorkerClient:
        """Where that name waits: where it did before, else where the fewest do."""
        worker = self._lines.pop(name, None) or min(self._workers, key=_waiting)
        self._lines[name] = worker
        while len(self._lines) > LINES_MAX:
            del self._lines[next(iter(self._lines))]
        return worker

    def post(self, command: api.Command) -> None:
        home = self._homes.get(command.session)
        if home is None:
            return
        if isinstance(command, api.Close):
            del self._homes[command.session]
        home.post(command)

    def cards(self) -> tuple[api.CardInfo, ...]:
        """Each card once, as the first worker that has it tells it."""
        by_name = {card.name: card for worker in reversed(self._workers) for card in worker.cards()}
        return tuple(by_name.values())

    def capacity(self) -> tuple[api.Capacity, ...]:
        """One entry per worker and card; `device` also names the worker when there are several."""
        return tuple(
            msgspec.structs.replace(entry, device=self._named(entry.device, number))
            for number, worker in enumerate(self._workers)
            for entry in worker.capacity()
        )

    def sessions(self) -> tuple[api.SessionInfo, ...]:
        return tuple(info for worker in self._workers for info in worker.sessions())

    def steps(self) -> tuple[api.BatchRan, ...]:
        """Of every worker's device, in order of their start."""
        steps = (
            msgspec.structs.replace(step, device=self._named(step.device, number))
            for number, worker in enumerate(self._workers)
            for step in worker.steps()
        )
        return tuple(sorted(steps, key=lambda step: step.started))

    def _named(self, device: str, number: int) -> str:
        return device if len(self._workers) == 1 else f"{device}:{number}"

    async def close(self) -> None:
        await asyncio.gather(*(worker.close() for worker in self._workers))
        self._homes.clear()


def _load(worker: WorkerClient) -> tuple[bool, float, int]:
    entries = worker.capacity()
    used = max((entry.share_used for entry in entries), default=0.0)
    return not worker.ready, used, sum(entry.sessions for entry in entries)


def _waiting(worker: WorkerClient) -> tuple[bool, int]:
    return not worker.ready, max((entry.waiting for entry in worker.capacity()), default=0)
