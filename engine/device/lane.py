"""One queue in front of one thread of the device: tickets wait here, the scheduler picks, batches run, one at a time.

Between two batches every waiting chunk gets the chance to hand in its next step, so sessions interleave step by step.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...clock import Clock
from ...models.contract.cache import CacheView
from ...models.contract.loaded import LoadedCard
from ..drive import Scope, Superseded
from ..scheduling.costs import Costs
from ..scheduling.scheduler import Rules, Run, Ticket, choose
from .observers import Observer, Seen
from .worker import Batch, Device, RowFault

PATIENCE = 0.6
PATIENCE_PRICES = 10
"""A batch that runs longer than both, in seconds and in its own price, is not slow: it hangs."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a ticket stands for."""

    loaded: LoadedCard
    row: Any
    view: CacheView | None
    scope: Scope


@dataclass(frozen=True, slots=True)
class Ran:
    """One row's result, when its batch started and what the whole batch took."""

    result: Any
    started: float
    seconds: float


@dataclass(slots=True)
class _Waiting:
    ticket: Ticket
    job: Job
    answer: "asyncio.Future[Ran]"


class Lane:
    """`reserved` tells when the next interactive chunk will need this thread (infinity: not known)."""

    def __init__(
        self,
        device: Device,
        costs: Costs,
        clock: Clock,
        rules: Rules,
        reserved: Callable[[], float],
        observers: Sequence[Observer],
    ) -> None:
        self._device, self._costs, self._clock, self._rules = device, costs, clock, rules
        self._reserved, self._observers = reserved, observers
        self._queue: dict[int, _Waiting] = {}
        self._changed = asyncio.Event()
        self._since, self._patience = math.inf, 0.0

    @property
    def busy(self) -> tuple[float, float]:
        """Seconds it has worked on its batch, and beyond how many it hangs."""
        return max(0.0, self._clock.now() - self._since), self._patience

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return not self._queue and self._since == math.inf

    @property
    def depth(self) -> int:
        return len(self._queue)

    async def submit(self, ticket: Ticket, job: Job) -> Ran:
        """Wait for the step to run. Raises what the step raised, or `Superseded` when it was withdrawn in time."""
        waiting = _Waiting(ticket, job, asyncio.get_running_loop().create_future())
        self._queue[ticket.number] = waiting
        self._changed.set()
        return await waiting.answer

    def withdraw(self) -> None:
        """Take back the steps of cancelled scopes that have not started: they are at a boundary."""
        for number in [n for n, waiting in self._queue.items() if waiting.job.scope.cancelled]:
            answer = self._queue.pop(number).answer
            if not answer.done():
                answer.set_exception(Superseded())
        self._changed.set()

    def nudge(self) -> None:
        """Something that decisions depend on has changed."""
        self._changed.set()

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        while True:
            self._changed.clear()
            now = self._clock.now()
            tickets = [waiting.ticket for waiting in self._queue.values()]
            match choose(tickets, now, self._costs, self._reserved(), self._rules):
                case Run(chosen):
                    await self._execute([self._queue.pop(ticket.number) for ticket in chosen])
                    await asyncio.sleep(0)
                case wait:
                    await self._sleep(wait.until - now)

    async def _execute(self, batch: list[_Waiting]) -> None:
        first = batch[0]
        rows = tuple(waiting.job.row for waiting in batch)
        views = tuple(waiting.job.view for waiting in batch)
        work = Batch(first.job.loaded, first.ticket.key.kind, rows, views)
        self._since = started = self._clock.now()
        self._patience = max(PATIENCE, PATIENCE_PRICES * self._costs.price_or(first.ticket.key, len(batch), math.inf))
        try:
            results = await self._device.run(work)
        except Exception as problem:
            for waiting in batch:
                if not waiting.answer.done():
                    waiting.answer.set_exception(problem)
            return
        finally:
            self._since = math.inf
        seconds = self._clock.now() - started
        tickets = tuple(waiting.ticket for waiting in batch)
        seen = Seen(first.ticket.key, tickets, results, started, seconds, work.where)
        for observer in self._observers:
            observer.see(seen)
        for waiting, result in zip(batch, results, strict=True):
            if waiting.answer.done():
                continue
            if isinstance(result, RowFault):
                waiting.answer.set_exception(result.problem)
            else:
                waiting.answer.set_result(Ran(result, started, seconds))

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if seconds == math.inf else max(0.0, seconds)):
                await self._changed.wait()
