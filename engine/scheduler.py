"""Which waiting steps run next: a pure function of the queue, the time and the prices.

    latest start = deadline - price of the chunk      (background: arrival + ageing)

Earliest latest start first; equals are drawn by a seeded shuffle. It is one figure for the whole chunk: if it grew with
every step done, two chunks that meet would take turns and both be late. The first ticket leads; others of its kind join
its batch while every member meets its deadline. Work with slack does not start when it would still hold the device at
`reserved`, the moment an interactive chunk is known to need it.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from .api import LatencyClass
from .costs import Costs, StepKey


@dataclass(frozen=True, slots=True)
class Ticket:
    """One step that waits for the device.

    `latest_start` is when its chunk had to begin to meet `deadline`; `remaining` prices this step and what follows it.
    """

    number: int
    session: str
    key: StepKey
    latency_class: LatencyClass
    queued: float
    latest_start: float
    deadline: float
    remaining: float


@dataclass(frozen=True, slots=True)
class Rules:
    """What the scheduler is told once. `ageing`: background work older than this competes with everyone."""

    max_rows: int
    ageing: float
    seed: int


@dataclass(frozen=True, slots=True)
class Run:
    """Run these tickets as one batch now; the first one leads."""

    tickets: tuple[Ticket, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing should start before `until` (infinity: until something changes)."""

    until: float


Decision = Run | Wait


def choose(queue: Sequence[Ticket], now: float, costs: Costs, reserved: float, rules: Rules) -> Decision:
    """One batch, or how long to wait. `reserved` is infinity when no interactive chunk is expected."""
    ranked = sorted(queue, key=lambda ticket: (_rank(ticket, rules), _draw(ticket, rules)))
    for leader in ranked:
        if _may_start(leader, now, costs, reserved, rules):
            return Run(_gather(leader, ranked, now, costs, rules))
    held_until = min((_rank(ticket, rules) for ticket in ranked), default=math.inf)
    return Wait(max(now, min(reserved, held_until)) if ranked else math.inf)


def _rank(ticket: Ticket, rules: Rules) -> float:
    if ticket.latency_class is LatencyClass.BACKGROUND:
        return ticket.queued + rules.ageing
    return ticket.latest_start


def _draw(ticket: Ticket, rules: Rules) -> float:
    return random.Random(rules.seed * 1_000_003 + ticket.number).random()


def _may_start(ticket: Ticket, now: float, costs: Costs, reserved: float, rules: Rules) -> bool:
    """Urgent work starts at once; work with slack only if the device is free again when it is needed."""
    start = _rank(ticket, rules)
    if start <= max(now, reserved) or reserved <= now:
        return True
    return now + costs.price(ticket.key, 1) <= reserved


def _gather(leader: Ticket, ranked: Sequence[Ticket], now: float, costs: Costs, rules: Rules) -> tuple[Ticket, ...]:
    members = [leader]
    for ticket in ranked:
        if len(members) == rules.max_rows:
            break
        if ticket is leader or ticket.key != leader.key:
            continue
        if _all_in_time([*members, ticket], now, costs):
            members.append(ticket)
    return tuple(members)


def _all_in_time(members: Sequence[Ticket], now: float, costs: Costs) -> bool:
    key = members[0].key
    finish = now + costs.price(key, len(members))
    alone = costs.price(key, 1)
    return all(finish + max(0.0, member.remaining - alone) <= member.deadline for member in members)
