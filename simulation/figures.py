"""What a simulated trace comes to: figures for people who buy devices, and for programs. Pure.

A session is within SLO when at most one in a hundred of its chunks was late, and 95 % of its keys were on the screen
within a chunk's length and 1.5 chunk prices.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from ..engine.api import LatencyClass
from .person import SimulatedPerson
from .prices import CardPrices
from .simulation import Played, Setup
from .trace import Act

ON_TIME = 0.99


class Spread(msgspec.Struct, frozen=True):
    """Milliseconds."""

    count: int
    p50: float
    p95: float
    p99: float


class CardFigures(msgspec.Struct, frozen=True):
    """One card's people. `holds`: interactive sessions that admission lets in at once, at the price it measured.

    `keys`, `prompts`, `redirects`: from the act to the first frame that shows it. `late`: chunks of who steers or
    watches that came later than the playout clock absorbs; `lateness`: of all their chunks. `background`: chunks made
    in the slack. `sessions` were let in and are no background; `within_slo` of them, see the module docstring.
    """

    card: str
    origin: str
    price_ms: float
    chunk_ms: float
    holds: int
    sessions: int
    within_slo: int
    slo_ms: float
    keys: Spread
    prompts: Spread
    redirects: Spread
    chunks: int
    late: int
    late_share: float
    lateness: Spread
    background: int
    faults: int


class SimulationReport(msgspec.Struct, frozen=True):
    """`people_most`: let in at once. `refused`: visits by reason. `in_line_s`: seconds of those who waited and came in.

    `utilisation`: share of the time in which the device worked, on average and in the fullest of 240 parts. `queue`:
    steps that wait for it, sampled. Bytes: of sessions at their most, of what is there for them, of weights and
    activations.
    """

    device: str
    policy: str
    trace: str
    seconds: float
    visits: int
    people_most: int
    refused: dict[str, int]
    in_line_s: Spread
    utilisation: float
    utilisation_most: float
    queue_mean: float
    queue_most: int
    memory_most: int
    memory_budget: int
    weight_bytes: int
    rows_per_batch: float
    cards: tuple[CardFigures, ...]


def report(setup: Setup, played: Played) -> SimulationReport:
    samples, seconds = played.samples, played.trace.seconds
    waited = [person.waited for person in played.people if person.entered is not None and person.waited > 0]
    return SimulationReport(
        device=setup.device,
        policy=setup.spec.policy,
        trace=played.trace.made_by,
        seconds=seconds,
        visits=len(played.people),
        people_most=max(sample.people for sample in samples),
        refused=dict(Counter(str(person.refused) for person in played.people if person.refused is not None)),
        in_line_s=spread(waited, 1.0),
        utilisation=sum(played.worked.values()) / seconds,
        utilisation_most=max(utilisation(played)),
        queue_mean=sum(sample.queue for sample in samples) / len(samples),
        queue_most=max(sample.queue for sample in samples),
        memory_most=max(sample.memory for sample in samples),
        memory_budget=played.memory_budget,
        weight_bytes=sum(prices.bytes.weights for prices in setup.cards),
        rows_per_batch=played.rows / max(1, played.batches),
        cards=tuple(_card(prices, played) for prices in setup.cards),
    )


def utilisation(played: Played) -> list[float]:
    """By sample: the share of the time since the one before in which the device worked; two queues may add up to 2."""
    times = [(0.0, 0.0), *((sample.at, sample.worked) for sample in played.samples)]
    return [(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(times)]


def late_share(played: Played) -> list[float]:
    """By sample: of the chunks since the one before, those that were late."""
    counts = [(0, 0), *((sample.chunks, sample.late) for sample in played.samples)]
    return [(after[1] - before[1]) / max(1, after[0] - before[0]) for before, after in pairwise(counts)]


def slo(prices: CardPrices) -> float:
    """Seconds from key to frame that a session may have at its 95th percentile."""
    return prices.chunk_seconds + 1.5 * prices.chunk_price


def within_slo(person: SimulatedPerson, bound: float) -> bool:
    keys = person.took[Act.KEY]
    on_time = person.missed <= (1 - ON_TIME) * person.chunks
    return on_time and (not keys or quantile(keys, 0.95) <= bound)


def guaranteed(people: Sequence[SimulatedPerson]) -> list[SimulatedPerson]:
    """Who was let in and is promised a pace."""
    return [p for p in people if p.entered is not None and p.visit.latency_class is not LatencyClass.BACKGROUND]


def took(people: Sequence[SimulatedPerson], act: Act) -> Spread:
    return spread([seconds for person in people for seconds in person.took[act]])


def spread(values: Sequence[float], scale: float = 1e3) -> Spread:
    """Of seconds, in milliseconds unless `scale` says otherwise."""
    p50, p95, p99 = (round(quantile(values, q) * scale, 2) for q in (0.5, 0.95, 0.99))
    return Spread(len(values), p50, p95, p99)


def quantile(values: Sequence[float], q: float) -> float:
    """Nearest rank; 0 of nothing."""
    return sorted(values)[math.ceil(q * len(values)) - 1] if values else 0.0


def _card(prices: CardPrices, played: Played) -> CardFigures:
    name, bound = prices.card.name, slo(prices)
    mine = [person for person in played.people if person.card == name]
    people = guaranteed(mine)
    chunks, late = sum(person.chunks for person in people), sum(person.missed for person in people)
    return CardFigures(
        card=name,
        origin=prices.origin,
        price_ms=round(played.chunk_prices[name] * 1e3, 2),
        chunk_ms=round(prices.chunk_seconds * 1e3, 2),
        holds=played.sessions_max[name],
        sessions=len(people),
        within_slo=sum(within_slo(person, bound) for person in people),
        slo_ms=round(bound * 1e3, 1),
        keys=took(people, Act.KEY),
        prompts=took(people, Act.PROMPT),
        redirects=took(people, Act.REDIRECT),
        chunks=chunks,
        late=late,
        late_share=late / max(1, chunks),
        lateness=spread([late for person in people for _, late in person.lates]),
        background=sum(person.chunks for person in mine) - chunks,
        faults=sum(person.faults for person in mine),
    )
