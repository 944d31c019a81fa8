"""One duty cycle on one device under one policy, event by event in virtual time. Pure: a seed gives the same contest.

    step      the engine's own scheduler picks every step; a redirect is seen at the next step boundary
    request   a chunk holds the device from its first step to its last, first come first served; a redirect is seen
              when the chunk is over

Both sides have the same asks just in time, the same playout clock, the same admission and pay the same for each step.
"""

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from ...models.contract.loop import CHUNK_ROLLOUT
from ...models.contract.recipe import Precision
from ..admission.rules import Demand, Headroom, refuse
from ..output.playout import Allowance
from ..scheduling.costs import Costs, Estimate, StepKey
from ..scheduling.scheduler import Rules, RunBatch, Ticket, choose
from .duty import Act, DutyCycle, Visit
from .prices import CardPrices, StepPrice, scatter
from .visitor import ENCODE, Visitor, Work


class Policy(StrEnum):
    STEP = "step"
    REQUEST = "request"


@dataclass(slots=True)
class Tally:
    """What a contest counted; latencies in seconds from the act to its first frame."""

    latencies: dict[Act, list[float]] = field(default_factory=lambda: {act: [] for act in Act})
    visitors: list[Visitor] = field(default_factory=list)
    refused: int = 0
    worst_wait: float = 0.0
    busy: float = 0.0
    wasted: float = 0.0


class Contest:
    """See the module docstring. `run` plays the whole trace and returns the tally."""

    def __init__(self, duty: DutyCycle, prices: CardPrices, policy: Policy, share_cap: float, rules: Rules) -> None:
        self.prices, self.policy, self.now = prices, policy, 0.0
        self.tally = Tally()
        self.chunk_price, self.allowance = Estimate(), Allowance(most=prices.chunk_seconds)
        self._duty, self._share_cap, self._rules = duty, share_cap, rules
        self._costs = Costs()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._queue: dict[int, Work] = {}
        self._here: dict[str, Visitor] = {}
        self._busy = False
        self._warm_up()

    def run(self) -> Tally:
        for number, visit in enumerate(self._duty.visits):
            self.at(visit.arrives, lambda visit=visit, number=number: self._admit(visit, number))  # type: ignore[misc]
        while self._events:
            at, _, happen = heapq.heappop(self._events)
            if at > self._duty.seconds:
                break
            self.now = at
            happen()
        return self.tally

    def at(self, when: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(when, self.now), next(self._order), happen))

    def submit(self, work: Work) -> None:
        work.queued = self.now
        self._queue[next(self._order)] = work
        self._serve()

    def withdraw(self, work: Work) -> bool:
        """True when the work was still waiting and now is gone."""
        number = next((n for n, waiting in self._queue.items() if waiting is work), None)
        if number is None:
            return False
        del self._queue[number]
        return True

    # ---- admission -------------------------------------------------------------------------------------------------

    def _admit(self, visit: Visit, number: int) -> None:
        room = Headroom(
            share_used=sum(self._need(visitor.visit).share for visitor in self._here.values()),
            share_cap=self._share_cap,
            slots_used=len(self._here),
            slots=1000,
            bytes_used=0,
            bytes_budget=0,
        )
        if refuse(self._need(visit), room) is not None:
            self.tally.refused += 1
            return
        visitor = Visitor(self, visit, number)
        self._here[visit.session] = visitor
        self.tally.visitors.append(visitor)
        visitor.start()
        for moment in visit.moments:
            self.at(moment.at, lambda act=moment.act: visitor.act(act))  # type: ignore[misc]
        self.at(visit.leaves, lambda: self._leave(visitor))

    def _leave(self, visitor: Visitor) -> None:
        del self._here[visitor.visit.session]
        visitor.leave()

    def _need(self, visit: Visit) -> Demand:
        return Demand(visit.latency_class, self.chunk_price.conservative, self.prices.chunk_seconds, 0)

    # ---- the device ------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        if self._busy or not self._queue:
            return
        match self.policy:
            case Policy.STEP:
                self._serve_step()
            case Policy.REQUEST:
                number = min(self._queue)
                work = self._queue.pop(number)
                seconds = sum(step.batch([work.scatter(i)]) for i, step in enumerate(work.steps))
                self._hold([work], seconds, len(work.steps))

    def _serve_step(self) -> None:
        tickets = [self._ticket(number, work) for number, work in self._queue.items()]
        reserved = min((visitor.expected for visitor in self._here.values()), default=math.inf)
        match choose(tickets, self.now, self._costs, reserved, self._rules):
            case RunBatch(chosen):
                batch = [self._queue.pop(ticket.number) for ticket in chosen]
                seconds = batch[0].step.batch([work.scatter(work.done) for work in batch])
                self._costs.observe(chosen[0].key, len(batch), seconds)
                self._hold(batch, seconds, 1)
            case wait if wait.until < math.inf:
                self.at(max(wait.until, self.now + 1e-6), self._serve)

    def _hold(self, batch: list[Work], seconds: float, steps: int) -> None:
        for work in batch:
            work.waited += self.now - work.queued
            if not work.background:
                self.tally.worst_wait = max(self.tally.worst_wait, self.now - work.queued)
        self._busy = True
        self.tally.busy += seconds
        self.at(self.now + seconds, lambda: self._release(batch, seconds, steps))

    def _release(self, batch: list[Work], seconds: float, steps: int) -> None:
        self._busy = False
        for work in batch:
            work.done += steps
            work.seconds += seconds / len(batch)
            if work.cancelled:
                self.tally.wasted += work.seconds
                work.over()
            elif work.done == len(work.steps):
                work.over()
            else:
                self.submit(work)
        self._serve()

    def _ticket(self, number: int, work: Work) -> Ticket:
        left = work.steps[work.done :]
        remaining = self._costs.price(self._key(left[0]), 1) + sum(self._costs.mean(self._key(s), 1) for s in left[1:])
        return Ticket(
            number=number,
            session=work.session,
            key=self._key(work.step),
            latency_class=work.latency_class,
            queued=work.queued,
            latest_start=work.latest_start,
            deadline=work.deadline - ENCODE,
            remaining=remaining,
        )

    def _key(self, step: StepPrice) -> StepKey:
        return StepKey(self.prices.name, CHUNK_ROLLOUT, step.kind, (1,), Precision.FP32)

    def _warm_up(self) -> None:
        for chunk in range(32):
            factors = [scatter(0, chunk, i) for i in range(len(self.prices.steps) + 1)]
            for step, factor in zip((*self.prices.steps, self.prices.prompt), factors, strict=True):
                for rows in (1, 2, 4):
                    self._costs.observe(self._key(step), rows, step.batch([factor] * rows))
            self.chunk_price.observe(sum(s.batch([f]) for s, f in zip(self.prices.steps, factors, strict=False)))
