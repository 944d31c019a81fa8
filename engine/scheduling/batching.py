"""The layer of batches: which steps may run as one, behind a leader. Pure.

Compatible are steps of equal `StepKey` (card, kind, shape, precision); noise level, window, input and prompt are each
row's own. The most urgent join first, each only while every member still meets its deadline.
"""

import math
from collections.abc import Sequence

from ..api import LatencyClass
from .costs import Costs
from .deadlines import all_in_time, must_start, urgent
from .ticket import Rules, Ticket


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
