"""One session of a contest: asks just in time, keeps its playout clock, and notes when what it did was first shown.

Mirrors `life/live.py` without a device, frames or threads: the playout clock and the margin are the engine's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..api import LatencyClass
from ..output.playout import Margin, Playout
from .duty import Act, Visit
from .prices import StepPrice, scatter

if TYPE_CHECKING:
    from .contest import Contest

ENCODE = 0.002
PROMPT_WITHIN = 0.1


@dataclass(slots=True, eq=False)
class Work:
    """A chunk or a prompt on its way through the device; `over` is called once, when it is done or cancelled."""

    number: int
    chunk: int
    session: str
    latency_class: LatencyClass
    steps: tuple[StepPrice, ...]
    latest_start: float
    deadline: float
    over: Callable[[], None]
    sampled: list[tuple[float, Act]] = field(default_factory=list)
    queued: float = 0.0
    done: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    cancelled: bool = False

    @property
    def background(self) -> bool:
        return self.latency_class is LatencyClass.BACKGROUND

    @property
    def step(self) -> StepPrice:
        return self.steps[self.done]

    def scatter(self, step: int) -> float:
        return scatter(self.number + 1, self.chunk, step)


class Visitor:
    """See the module docstring."""

    def __init__(self, contest: Contest, visit: Visit, number: int) -> None:
        prices = contest.prices
        self.visit, self.chunks, self.missed = visit, 0, 0
        self.latencies: list[float] = []
        self._contest, self._number = contest, number
        self._playout = Playout(prices.fps, prices.per_chunk, contest.now)
        self._margin = Margin()
        self._pending: list[tuple[float, Act]] = []
        self._times: tuple[float, ...] = ()
        self._running: Work | None = None
        self._due, self._turn = math.inf, 0
        self._resting = self._left = False
        self._prompts = 0

    @property
    def expected(self) -> float:
        interactive = self.visit.latency_class is LatencyClass.INTERACTIVE
        return self._due if interactive and self._running is None and not self._resting else math.inf

    def start(self) -> None:
        self._playout.restart(self._contest.now, self._lead)
        self._arm()

    def leave(self) -> None:
        self._left = True
        self._cancel()

    def act(self, act: Act) -> None:
        """A person does something now."""
        if self._left:
            return
        now = self._contest.now
        match act:
            case Act.KEY:
                self._pending.append((now, act))
            case Act.PROMPT:
                self._encode_prompt(now)
            case Act.REDIRECT:
                self._redirect(now)
            case Act.REST:
                self._resting = True
            case Act.WAKE:
                self._resting = False
                if self._running is None:
                    self._playout.restart(now, self._lead)
                    self._arm()

    @property
    def _lead(self) -> float:
        return self._contest.chunk_price.conservative + ENCODE + self._margin.value + self._contest.allowance.value

    @property
    def _background(self) -> bool:
        return self.visit.latency_class is LatencyClass.BACKGROUND

    def _encode_prompt(self, now: float) -> None:
        self._prompts += 1
        prompt, within = self._contest.prices.prompt, now + PROMPT_WITHIN
        work = Work(
            self._number, -self._prompts, self.visit.session, self.visit.latency_class, (prompt,),
            within - prompt.seconds, within, lambda: self._pending.append((now, Act.PROMPT)),
        )  # fmt: skip
        self._contest.submit(work)

    def _redirect(self, now: float) -> None:
        self._pending.append((now, Act.REDIRECT))
        shown = [at for at in self._times if at <= now]
        if len(shown) < len(self._times):
            self._playout.restart(now, self._lead, shown[-1] if shown else now)
            self._times = tuple(shown)
        self._cancel()
        if self._running is None and not self._resting:
            self._arm()

    def _cancel(self) -> None:
        running = self._running
        if running is not None:
            running.cancelled = True
            if self._contest.withdraw(running):
                self._over()

    def _arm(self) -> None:
        if self._resting or self._left:
            return
        self._turn += 1
        turn = self._turn
        ahead = self.visit.latency_class is not LatencyClass.INTERACTIVE
        self._due = self._contest.now if self._background else self._playout.due(self._lead, ENCODE, ahead)
        self._contest.at(self._due, lambda: self._ask(turn))

    def _ask(self, turn: int) -> None:
        if turn != self._turn or self._resting or self._left or self._running is not None:
            return
        contest, price = self._contest, self._contest.chunk_price.conservative
        deadline = math.inf if self._background else self._playout.next
        sampled, self._pending = self._pending, []
        self._running = Work(
            self._number, self.chunks, self.visit.session, self.visit.latency_class, contest.prices.steps,
            deadline - ENCODE - price, deadline, self._over, sampled,
        )  # fmt: skip
        contest.submit(self._running)

    def _over(self) -> None:
        work, self._running = self._running, None
        assert work is not None
        if work.cancelled:
            self._pending = work.sampled + self._pending
        else:
            self._finish(work)
        self._arm()

    def _finish(self, work: Work) -> None:
        contest = self._contest
        self.chunks += 1
        if self._background:
            return
        contest.chunk_price.observe(work.seconds)
        ready = contest.now + ENCODE
        self.missed += contest.now > work.deadline
        self._margin.finished(ready > work.deadline)
        contest.allowance.finished(ready - work.deadline, work.waited)
        self._times = self._playout.place(ready)
        for pressed, act in work.sampled:
            latency = self._times[0] - pressed
            contest.tally.latencies[act].append(latency)
            if act is Act.KEY:
                self.latencies.append(latency)
