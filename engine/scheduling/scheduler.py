"""Which waiting steps run next: a pure function of the queue, the time and the prices.

    ready (the queue: loops said what is next) -> who leads, and may start (deadlines.py) -> who joins its batch

The most urgent ticket that may start and need not yield leads; those of equal `StepKey` join its batch while every
member meets its deadline. Noise level, window, input and prompt are each row's own. Work with slack does not start when
it would still hold the device at `reserved`, the moment an interactive chunk is known to need it.

`Policy.REQUEST` knows none of this: first come, first served, one row at a time; the queue offers no other chunk's
steps until the one that has begun is over.
"""

import math
from collections.abc import Sequence

from ..api import LatencyClass
from ..spec import Policy
from .costs import Costs
from .deadlines import all_in_time, by_urgency, may_start, must_start, rank, urgent, yields
from .ticket import Rules, Ticket


def choose(
    queue: Sequence[Ticket], now: float, costs: Costs, reserved: float, rules: Rules
) -> tuple[Ticket, ...] | float:
    """The batch that should run now, its leader first; or a time before which nothing should (infinity: until something
    changes). `reserved` is infinity when no interactive chunk is expected.
    """
    if not queue:
        return math.inf
    if rules.policy is Policy.REQUEST:
        return (min(queue, key=lambda ticket: ticket.number),)
    ranked = by_urgency(queue, rules) if len(queue) > 1 else queue
    able = [ticket for ticket in ranked if may_start(ticket, now, costs, reserved, rules)]
    if not able:
        return max(now, min(reserved, min(rank(ticket, rules) for ticket in ranked)))
    leader = next((ticket for ticket in able if not yields(ticket, able, now, costs, rules)), able[0])
    return gather(leader, ranked, now, costs, reserved, rules)


def gather(
    leader: Ticket, ranked: Sequence[Ticket], now: float, costs: Costs, reserved: float, rules: Rules
) -> tuple[Ticket, ...]:
    """The leader and those that join it, at most `max_rows`; a leader with slack is not joined beyond `reserved`.

    Background work has no deadline of its own: it joins as long as it makes nobody else late.
    """
    members = [leader]
    until = math.inf if urgent(leader, now, reserved, rules) else reserved
    others = [ticket for ticket in ranked if ticket.latency_class is not LatencyClass.BACKGROUND]
    spare = min([reserved, *(must_start(ticket, rules) for ticket in others if ticket is not leader)])
    for ticket in ranked:
        if len(members) == rules.max_rows:
            break
        if ticket is leader or ticket.key != leader.key:
            continue
        limit = spare if ticket.latency_class is LatencyClass.BACKGROUND else until
        if now + costs.price(ticket.key, len(members) + 1) <= limit and all_in_time([*members, ticket], now, costs):
            members.append(ticket)
    return tuple(members)
