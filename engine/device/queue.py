"""One queue in front of one thread of the device: tickets wait here, the scheduler picks, batches run, one at a time.

    queue -> choose -> [ stands ready, can be taken back ] -> [ runs ] -> results go to their rows -> queue

Between two batches every waiting chunk gets the chance to hand in its next step, so sessions interleave step by step.
What stands ready begins without a hand-over; it is decided anew with everything that changes until it begins.
"""

import asyncio
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...clock import Clock
from ...models.contract.cache import CacheView
from ...models.contract.loaded import LoadedCard
from ..cancel import CancelScope, Superseded
from ..scheduling.costs import Costs
from ..scheduling.scheduler import choose
from ..scheduling.staging import may_follow
from ..scheduling.ticket import Rules, Ticket
from ..spec import EngineSpec, Policy
from ..wakeup import Wakeup
from .batch import Batch, RowFault
from .device import Device, Measured, Revoke
from .faults import FaultOf, fault_of
from .observers import BatchRecord, Observer

PATIENCE_PRICES = 10
"""A batch that runs longer than this in its own price, and than the engine's patience, is not slow: it hangs."""


DEFAULT = EngineSpec()


@dataclass(frozen=True, slots=True)
class StepRun:
    """One row's result, when its batch started, and the row's share of the batch's seconds: all rows' are what the
    device worked. `company`: seconds of the batch that are those of others in it; `behind`: for which batches of others
    stood before it.
    """

    result: Any
    started: float
    seconds: float
    company: float
    behind: float


@dataclass(slots=True)
class _QueuedStep:
    """A ticket and what it stands for. `worked`: what the queue had worked when this came, in seconds."""

    ticket: Ticket
    loaded: LoadedCard
    row: Any
    view: CacheView | None
    scope: CancelScope
    worked: float
    answer: "asyncio.Future[StepRun]"


@dataclass(slots=True)
class _InFlight:
    """A batch that was handed to the device; `since`: when it was, or when the one before it ended."""

    batch: tuple[_QueuedStep, ...]
    tickets: tuple[Ticket, ...]
    price: float
    since: float
    revoke: Revoke = lambda: False


class DeviceQueue:
    """`name`: of this thread, for people. `reserved` tells when the next interactive chunk will need it (infinity: not
    known). `patience`: seconds that a batch may take whatever its price.
    """

    def __init__(
        self,
        device: Device,
        name: str,
        costs: Costs,
        clock: Clock,
        rules: Rules,
        reserved: Callable[[], float],
        observers: Sequence[Observer],
        patience: float = DEFAULT.patience,
    ) -> None:
        self._patience = patience
        self._device, self._name, self._costs, self._clock, self._rules = device, name, costs, clock, rules
        self._reserved, self._observers = reserved, observers
        self._queue: dict[int, _QueuedStep] = {}
        self._running: _InFlight | None = None
        self._staged: _InFlight | None = None
        """What stands ready behind the batch that runs."""
        self._worked = 0.0
        self._held_by: CancelScope | None = None
        """The chunk that has begun; nothing else runs until it is over. Request level alone."""
        self._changed = Wakeup()
        self.lost: Exception | None = None
        """What ended the device. Nobody hears of the batch that met it: its process has to end."""

    @property
    def busy(self) -> tuple[float, float]:
        """Seconds it has worked on its batch, and beyond how many it hangs."""
        if (flight := self._running) is None:
            return 0.0, 0.0
        return max(0.0, self._clock.now() - flight.since), max(self._patience, PATIENCE_PRICES * flight.price)

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return not self._queue and self._running is None

    @property
    def depth(self) -> int:
        return len(self._queue) + (0 if self._staged is None else len(self._staged.batch))

    @property
    def waiting(self) -> tuple[str, ...]:
        """Sessions whose steps have not been handed to the device."""
        return tuple(waiting.ticket.session for waiting in self._queue.values())

    @property
    def cards(self) -> frozenset[str]:
        """Of all steps that wait, stand ready or run."""
        flights = (flight.tickets for flight in (self._running, self._staged) if flight is not None)
        tickets = [*(waiting.ticket for waiting in self._queue.values()), *itertools.chain(*flights)]
        return frozenset(ticket.key.card for ticket in tickets)

    async def submit(
        self, ticket: Ticket, loaded: LoadedCard, row: Any, view: CacheView | None, scope: CancelScope
    ) -> StepRun:
        """Wait for the step to run. Raises what the step raised, or `Superseded` when it was withdrawn in time."""
        answer: asyncio.Future[StepRun] = asyncio.get_running_loop().create_future()
        worked = self._worked + self.busy[0]
        self._queue[ticket.number] = _QueuedStep(ticket, loaded, row, view, scope, worked, answer)
        self._changed.set()
        return await answer

    def withdraw(self) -> None:
        """Take back the steps of cancelled scopes that have not started: they are at a boundary."""
        if self._staged is not None and any(waiting.scope.cancelled for waiting in self._staged.batch):
            self._unstage()
        for number in [n for n, waiting in self._queue.items() if waiting.scope.cancelled]:
            answer = self._queue.pop(number).answer
            if not answer.done():
                answer.set_exception(Superseded())
        self._changed.set()

    def release(self, scope: CancelScope) -> None:
        """The chunk of that scope has ended, whatever was expected of it."""
        if self._held_by is scope:
            self._held_by = None
            self._changed.set()

    def nudge(self) -> None:
        """Something that decisions depend on has changed."""
        self._changed.set()

    async def serve(self) -> None:
        """Serve the queue until cancelled."""
        while True:
            await self._changed.wait(self._decide())

    def _decide(self) -> float:
        """Hand over what should run next, if it may be; seconds after which to look again though nothing changes."""
        now, running = self._clock.now(), self._running
        free = now if running is None else max(now, running.since + running.price)
        tickets = [waiting.ticket for waiting in self._queue.values() if self._held_by in (None, waiting.scope)]
        if self._staged is not None:
            tickets += self._staged.tickets
        chosen = choose(tickets, free, self._costs, self._reserved(), self._rules)
        if isinstance(chosen, tuple):
            if self._hand_over(chosen) and self._staged is None and self._queue:
                return 0.0  # something else may stand ready behind it
            return free - now if free > now else math.inf
        self._unstage()
        return chosen - now

    def _hand_over(self, chosen: tuple[Ticket, ...]) -> bool:
        """To the device, or behind the batch that runs: unless it stands there already, or waiting is better."""
        if (self._staged is not None and self._staged.tickets == chosen) or not self._unstage():
            return False
        running = self._running
        if running is not None and not may_follow(chosen, running.tickets, self._costs, self._rules):
            return False
        batch = tuple(self._queue.pop(ticket.number) for ticket in chosen)
        first = batch[0]
        if self._rules.policy is Policy.REQUEST:
            more = first.scope.whole = first.ticket.then is not None
            self._held_by = first.scope if more else None
        rows, views = tuple(waiting.row for waiting in batch), tuple(waiting.view for waiting in batch)
        work = Batch(first.loaded, first.ticket.key.loop, first.ticket.key.kind, rows, views)
        price = self._costs.price_or(first.ticket.key, len(batch), math.inf)
        flight = _InFlight(batch, chosen, price, self._clock.now())
        if running is None:
            self._running = flight
        else:
            self._staged = flight
        flight.revoke = self._device.start(work, self._landed)
        return True

    def _unstage(self) -> bool:
        """Take back what stands ready; False when the device has begun it in this moment."""
        if (staged := self._staged) is not None:
            if not staged.revoke():
                return False
            self._staged = None
            self._queue.update((waiting.ticket.number, waiting) for waiting in staged.batch)
        return True

    def _landed(self, outcome: Measured | Exception) -> None:
        """A batch has ended: its rows hear of it and may hand in their next steps before the next decision."""
        if isinstance(outcome, Exception) and fault_of(outcome) is FaultOf.DEVICE:
            self.lost = self.lost or outcome
        if self.lost is not None:
            return  # it stays busy for good: what stood behind is as wrong
        flight, self._running, self._staged = self._running, self._staged, None
        assert flight is not None, "what ended was handed over"
        before = self._worked
        self._worked += outcome.seconds if isinstance(outcome, Measured) else self._clock.now() - flight.since
        if self._running is not None:
            self._running.since = self._clock.now()
        try:
            if isinstance(outcome, Exception):
                raise outcome
            self._answer(flight, outcome, before)
        except Exception as problem:
            for waiting in flight.batch:
                if not waiting.answer.done():
                    waiting.answer.set_exception(problem)
        asyncio.get_running_loop().call_soon(self._changed.set)

    def _answer(self, flight: _InFlight, done: Measured, worked: float) -> None:
        """`worked`: what the queue had when this batch began."""
        tickets, results = flight.tickets, done.results
        key, share = tickets[0].key, done.seconds / len(tickets)
        seen = BatchRecord(key, tickets, results, done.started, done.seconds, flight.price, self._name)
        for observer in self._observers:
            observer.see(seen)
        self._costs.observe(key, len(tickets), done.seconds)
        for waiting, result in zip(flight.batch, results, strict=True):
            if waiting.answer.done():
                continue
            if isinstance(result, RowFault):
                waiting.answer.set_exception(result.problem)
            else:
                behind = max(0.0, worked - waiting.worked)
                waiting.answer.set_result(StepRun(result, done.started, share, done.seconds - share, behind))
