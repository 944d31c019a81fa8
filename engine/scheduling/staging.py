"""The layer of hand-over: whether a batch may stand ready behind the one that runs. Pure.

    staged    [ batch 1 ][ batch 2 ]           begins the moment the device is free; can be taken back until then
    waiting   [ batch 1 ]....[ batch 1 + 2 ]   rows of batch 1 come back with their next step

Waiting costs the device a hand-over. It is worth that where those who come back are more urgent (else chunks that meet
would take turns and all be late), and where they could join and a common batch is cheaper.
"""

from collections.abc import Sequence

from ..api import LatencyClass
from .costs import Costs
from .deadlines import rank
from .ticket import Rules, Ticket

HANDOVER = 0.0005
"""Seconds a device stands idle between two batches of which the second was not ready (`worldroom bench overhead`)."""


def may_follow(batch: Sequence[Ticket], running: Sequence[Ticket], costs: Costs, rules: Rules) -> bool:
    """Whether nothing is gained by waiting for the rows of `running` to come back; unknown prices promise no gain."""
    key, rows = batch[0].key, len(batch)
    back = [ticket for ticket in running if ticket.then is not None]
    if any(_first(ticket, batch[0], rules) for ticket in back):
        return False
    joining = min(sum(ticket.then == key for ticket in back), rules.max_rows - rows)
    if joining <= 0:
        return True
    apart = costs.price_or(key, rows, 0.0) + costs.price_or(key, joining, 0.0)
    return apart - costs.price_or(key, rows + joining, 0.0) < HANDOVER


def _first(comes_back: Ticket, leader: Ticket, rules: Rules) -> bool:
    """Whether a row would be served before the leader, had it come back. Background work stands in line anew."""
    return comes_back.latency_class is not LatencyClass.BACKGROUND and rank(comes_back, rules) < rank(leader, rules)
