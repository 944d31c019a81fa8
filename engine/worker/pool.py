"""One door over several workers of this host, one per device: a session lives where it fits and is least late.

A worker that dies takes only its own sessions into the pause: those that fit on other devices go on there at once, the
others in its next process. Imports no tensor library.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import msgspec

from .. import api
from . import suspended
from .client import WorkerClient
from .placement import Vacancy, vacancy

log = logging.getLogger(__name__)

LINES_MAX = 256
NOT_SERVED = Vacancy(ready=False, fits=False, on_device=False, late_us=0.0, share=0.0, sessions=0)
"""Of a worker that does not say that it has the card: it is asked last, and says why not."""


class WorkerPool:
    """Implements `api.EngineClient` over started or startable doors; at least one."""

    def __init__(self, workers: tuple[WorkerClient, ...]) -> None:
        if not workers:
            raise ValueError("at least one worker is needed, got none")
        self._workers = workers
        for worker in workers:
            worker.ended = partial(self._move_from, worker)
        self._homes: dict[str, WorkerClient] = {}
        self._cards: dict[str, str] = {}
        """The card of every session that has a home."""
        self._lines: dict[str, WorkerClient] = {}

    async def start(self) -> None:
        """Start all of them at once; raises `remote.WorkerFailed` of the first that cannot serve."""
        await asyncio.gather(*(worker.start() for worker in self._workers))

    @property
    def ready(self) -> bool:
        return any(worker.ready for worker in self._workers)

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        """Ask one after the other, the best first; when nobody has room, wait in the line of one of them."""
        if command.session in self._homes:
            detail = f"session '{command.session}' is open already"
            return api.Refused(command.session, api.RefusalReason.CONFLICT, detail, 0, 0.0)
        if len(self._workers) == 1:
            return await self._open_at(self._workers[0], command, events)
        refusals: list[api.Refused] = []
        ranked = self._ranked(command.card)
        there = [worker for worker in ranked if _on_device(worker, command.card)]
        for worker in there:
            answer = await self._open_at(worker, msgspec.structs.replace(command, line=""), events)
            if isinstance(answer, api.Opened):
                self._lines.pop(command.line, None)
                return answer
            refusals.append(answer)
            if answer.reason is api.RefusalReason.CONFLICT:
                return answer  # closed while it was opening
        full = [worker for worker, no in zip(there, refusals, strict=True) if no.figures is not None]
        elsewhere = [worker for worker in ranked if worker not in there]
        if not elsewhere and (not command.line or not full):
            return next((no for no in refusals if no.figures is not None), refusals[0])
        waits_at = self._line_of(command, full + elsewhere) if command.line else elsewhere[0]
        answer = await self._open_at(waits_at, command, events)
        if isinstance(answer, api.Opened):
            self._lines.pop(command.line, None)
        return answer

    def suspend(self, session: str) -> bytes | None:
        """See `api.SuspendableEngine`."""
        home = self._homes.get(session)
        return None if home is None else home.suspend(session)

    async def restore(
        self, world: bytes, events: Callable[[api.Event], None], near: str = ""
    ) -> api.Opened | api.Refused:
        """See `api.SuspendableEngine`: where it fits best."""
        suspension = suspended.loads(world)
        opening = suspension.resume_state.opening
        home = self._homes.get(near) or self._homes.get(suspension.parts_of)  # a fork stays by its parts
        worker = home or self._ranked(opening.card)[0]
        return await self._at(worker, opening, worker.resume(suspension, events))

    def progress(self, session: str) -> api.Progress:
        """See `api.SuspendableEngine`."""
        home = self._homes.get(session)
        return api.Progress() if home is None else home.progress(session)

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
        for branch in fork.branches:
            self._homes[branch.session], self._cards[branch.session] = home, self._cards[fork.session]
        answer = await home.part(fork, events)
        if isinstance(answer, api.Refused):
            for branch in fork.branches:
                self._forget(branch.session)
        return answer

    def on_disk(self, session: str) -> int:
        """See `api.SuspendableEngine`."""
        return max(worker.on_disk(session) for worker in self._workers)

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
        return self._workers[0].written_down(opening, history, texts, progress, embeddings, since)

    async def _open_at(
        self, worker: WorkerClient, command: api.Open, events: Callable[[api.Event], None]
    ) -> api.Opened | api.Refused:
        return await self._at(worker, command, worker.open(command, events))

    async def _at(
        self, worker: WorkerClient, opening: api.Open, answering: Awaitable[api.Opened | api.Refused]
    ) -> api.Opened | api.Refused:
        """The session's home is there from now on, unless it is not let in."""
        session = opening.session
        self._homes[session], self._cards[session] = worker, opening.card
        try:
            answer = await answering
        except BaseException:
            self._forget(session)
            raise
        if isinstance(answer, api.Refused):
            self._forget(session)
        return answer

    def _ranked(self, card: str) -> list[WorkerClient]:
        """The best for one more session of that card first."""
        return sorted(self._workers, key=lambda worker: (self._vacancy(worker, card) or NOT_SERVED).rank)

    def _vacancy(self, worker: WorkerClient, card: str) -> Vacancy | None:
        homes = Counter(self._cards[session] for session, home in self._homes.items() if home is worker)
        return vacancy(card, worker.ready, worker.capacity(), worker.sessions(), homes)

    def _move_from(self, dead: WorkerClient) -> None:
        """A worker has ended: sessions of it that fit on another device go on there, the others wait for its next
        process.
        """
        moved = 0
        for session_log in dead.recovery.movable():
            opening = session_log.opening
            best = self._ranked(opening.card)[0]
            there = self._vacancy(best, opening.card)
            if best is not dead and there is not None and there.ready and there.fits:
                dead.recovery.move(session_log, best.recovery)
                self._homes[opening.session] = best
                moved += 1
        if moved:
            log.info("%d sessions of %s go on on other devices", moved, dead.device.name)

    def _forget(self, session: str) -> None:
        self._homes.pop(session, None)
        self._cards.pop(session, None)

    def _line_of(self, command: api.Open, full: Iterable[WorkerClient]) -> WorkerClient:
        """Where that name waits: where it did before, else where its card can come to at once, or the fewest wait."""
        name = command.line
        worker = self._lines.pop(name, None) or min(full, key=lambda worker: _waiting(worker, command.card))
        self._lines[name] = worker
        while len(self._lines) > LINES_MAX:
            del self._lines[next(iter(self._lines))]
        return worker

    def post(self, command: api.Command) -> None:
        home = self._homes.get(command.session)
        if home is None:
            return
        if isinstance(command, api.Close):
            self._forget(command.session)
        home.post(command)

    def cards(self) -> tuple[api.CardInfo, ...]:
        """Each card once, as the first worker that has it tells it."""
        by_name = {card.name: card for worker in reversed(self._workers) for card in worker.cards()}
        return tuple(by_name.values())

    def capacity(self) -> tuple[api.Capacity, ...]:
        """One entry per device and card."""
        return tuple(entry for worker in self._workers for entry in worker.capacity())

    def sessions(self) -> tuple[api.SessionInfo, ...]:
        return tuple(info for worker in self._workers for info in worker.sessions())

    def steps(self) -> tuple[api.BatchRan, ...]:
        """Of every worker's device, in order of their start."""
        steps = (step for worker in self._workers for step in worker.steps())
        return tuple(sorted(steps, key=lambda step: step.started))

    async def close(self) -> None:
        await asyncio.gather(*(worker.close() for worker in self._workers))
        self._homes.clear()
        self._cards.clear()


def _waiting(worker: WorkerClient, card: str) -> tuple[bool, bool, int]:
    entries = worker.capacity()
    comes = any(entry.card == card and not (entry.on_device or entry.in_the_way) for entry in entries)
    return not worker.ready, not comes, max((entry.waiting for entry in entries), default=0)


def _on_device(worker: WorkerClient, card: str) -> bool:
    """As far as it has told."""
    return all(entry.on_device for entry in worker.capacity() if entry.card == card)
