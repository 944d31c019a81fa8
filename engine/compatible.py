"""The layer of batches: which steps may run as one, behind a leader. Pure.

Compatible are steps of equal `StepKey` (card, kind, shape, precision); noise level, window, input and prompt are each
row's own. The most urgent join first, each only while every member still meets its deadline.
"""

from collections.abc import Sequence

from .costs import Costs
from .deadlines import all_in_time
from .ticket import Rules, Ticket


def gather(leader: Ticket, ranked: Sequence[Ticket], now: float, costs: Costs, rules: Rules) -> tuple[Ticket, ...]:
    """The leader and those that join it, at most `max_rows`."""
    members = [leader]
    for ticket in ranked:
        if len(members) == rules.max_rows:
            break
        if ticket is leader or ticket.key != leader.key:
            continue
        if all_in_time([*members, ticket], now, costs):
            members.append(ticket)
    return tuple(members)
