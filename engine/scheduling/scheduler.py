"""Which waiting steps run next: a pure function of the queue, the time and the prices, in four layers.

    ready (the queue: loops said what is next)  ->  urgency.py  ->  deadlines.py  ->  batching.py

The most urgent ticket that may start and need not yield leads; compatible ones join its batch while every member meets
its deadline. Work with slack does not start when it would still hold the device at `reserved`, the moment an
interactive chunk is known to need it.

`Policy.REQUEST` knows no layers: first come, first served, one row at a time; the queue offers no other chunk's steps
until the one that has begun is over.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..spec import Policy
from .batching import gather
from .costs import Costs
from .deadlines import may_start, yields
from .ticket import Rules, Ticket
from .urgency import by_urgency, rank

__all__ = ["Decision", "Rules", "RunBatch", "Ticket", "WaitUntil", "choose"]


@dataclass(frozen=True, slots=True)
class RunBatch:
    """Run these tickets as one batch now; the first one leads."""

    tickets: tuple[Ticket, ...]


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Nothing should start before `until` (infinity: until something changes)."""

    until: float


Decision = RunBatch | WaitUntil


def choose(queue: Sequence[Ticket], now: float, costs: Costs, reserved: float, rules: Rules) -> Decision:
    """One batch, or how long to wait. `reserved` is infinity when no interactive chunk is expected."""
    if not queue:
        return WaitUntil(math.inf)
    if rules.policy is Policy.REQUEST:
        return RunBatch((min(queue, key=lambda ticket: ticket.number),))
    ranked = by_urgency(queue, rules) if len(queue) > 1 else queue
    able = [ticket for ticket in ranked if may_start(ticket, now, costs, reserved, rules)]
    if not able:
        return WaitUntil(max(now, min(reserved, min(rank(ticket, rules) for ticket in ranked))))
    leader = next((ticket for ticket in able if not yields(ticket, able, now, costs, rules)), able[0])
    return RunBatch(gather(leader, ranked, now, costs, reserved, rules))
