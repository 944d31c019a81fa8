"""The layer of urgency: who should start first. Pure.

    rank = latest start of the chunk (deadline - price)      background: arrival + ageing

Earliest rank first; equals are drawn by a seeded hash of their number. A chunk's rank is one figure for all its steps:
if it grew with every step done, two chunks that meet would take turns and both be late. Ageing turns waiting into rank,
so background work that has waited long enough stands in front of whatever is due later.
"""

from collections.abc import Iterable

from ..api import LatencyClass
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
