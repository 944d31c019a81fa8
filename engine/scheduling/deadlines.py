"""When a waiting step has to start, and so who goes first and what may run without making anybody late. Pure.

    rank       = deadline - price of the chunk    who should start first       background: arrival + ageing
    must_start = deadline - remaining             the last moment at which this very step can start, its chunk in time

Earliest rank first; equals are drawn by a seeded hash of their number. A chunk's rank is one figure for all its steps:
if it grew with every step done, two chunks that meet would take turns and both be late. Ageing turns waiting into rank,
so background work that has waited long enough stands in front of whatever is due later.

A step is indivisible, so a long one in front of a tight deadline is refused while it can wait: for a chunk that is
known to come (`reserved`), and for one that is here already (`yields`). Nobody waits for a chunk that is late anyway.
"""

from collections.abc import Iterable, Sequence

from ..api import LatencyClass
from .costs import Costs
from .ticket import Rules, Ticket

_MASK = (1 << 64) - 1


def by_urgency(queue: Iterable[Ticket], rules: Rules) -> list[Ticket]:
    """The most urgent ticket first."""
    return sorted(queue, key=lambda ticket: (rank(ticket, rules), draw(rules.seed, ticket.number)))


def rank(ticket: Ticket, rules: Rules) -> float:
    if ticket.latency_class is LatencyClass.BACKGROUND:
        return ticket.queued + rules.ageing
    return ticket.latest_start


def draw(seed: int, number: int) -> int:
    """64 bits that look random (the finalizer of splitmix64, Steele et al. 2014), equal for equal arguments."""
    bits = (seed * 0x9E3779B97F4A7C15 + number * 0xD1B54A32D192ED03 + 0x9E3779B97F4A7C15) & _MASK
    bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) & _MASK
    return bits ^ bits >> 31


def must_start(ticket: Ticket, rules: Rules) -> float:
    if ticket.latency_class is LatencyClass.BACKGROUND:
        return rank(ticket, rules)
    return ticket.deadline - ticket.remaining


def may_start(ticket: Ticket, now: float, costs: Costs, reserved: float, rules: Rules) -> bool:
    """Urgent work starts at once; work with slack only if the device is free again when it is needed."""
    return urgent(ticket, now, reserved, rules) or now + costs.price(ticket.key, 1) <= reserved


def urgent(ticket: Ticket, now: float, reserved: float, rules: Rules) -> bool:
    """Its time has come, or comes before that of the chunk that is expected."""
    return rank(ticket, rules) <= max(now, reserved) or reserved <= now


def yields(leader: Ticket, others: Sequence[Ticket], now: float, costs: Costs, rules: Rules) -> bool:
    """Whether the leader's step would make another chunk late that both could avoid: the other goes first."""
    slack = must_start(leader, rules) - now
    if slack < 0 or len(others) < 2:
        return False
    ends = now + costs.price(leader.key, 1)
    return any(
        now <= must_start(other, rules) < ends and other.remaining <= slack
        for other in others
        if other is not leader and other.latency_class is not LatencyClass.BACKGROUND
    )


def all_in_time(members: Sequence[Ticket], now: float, costs: Costs) -> bool:
    """Whether a batch of these meets every member's deadline, counting what each has to do after it.

    Background work has none.
    """
    key = members[0].key
    finish = now + costs.price(key, len(members))
    alone = costs.price(key, 1)
    return all(
        finish + max(0.0, member.remaining - alone) <= member.deadline
        for member in members
        if member.latency_class is not LatencyClass.BACKGROUND
    )
