"""The layer of deadlines: what still meets every one of them, and what should wait for a tighter one. Pure.

    must_start = deadline - remaining       the last moment at which this very step can start and its chunk be in time

A step is indivisible, so a long one in front of a tight deadline is refused while it can wait: for a chunk that is
known to come (`reserved`), and for one that is here already (`yields`). Nobody waits for a chunk that is late anyway.
"""

from collections.abc import Sequence

from ..api import LatencyClass
from .costs import Costs
from .ticket import Rules, Ticket
from .urgency import rank


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
