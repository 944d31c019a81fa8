"""Both policies on the same trace and the same prices, side by side, and a plain sentence about who wins."""

import math

import msgspec
from rich.console import Group
from rich.table import Table

from ..api import LatencyClass
from ..scheduler import Rules
from .contest import Contest, Policy, Tally
from .duty import Act, DutyCycle
from .prices import DRIVE, DRIVE_FAST, LONG_CHUNK, CardPrices
from .visitor import Visitor

LOADS = (0.5, 0.7, 0.9)
ON_TIME = 0.99
CARDS = (DRIVE, DRIVE_FAST, LONG_CHUNK)


class Spread(msgspec.Struct, frozen=True):
    """Milliseconds from an act to the first frame that shows it."""

    count: int
    p50: float
    p95: float
    p99: float


class Side(msgspec.Struct, frozen=True):
    """One policy's result. `wasted_s`: device seconds of chunks that nobody saw; `background`: its chunks made."""

    policy: Policy
    keys: Spread
    redirects: Spread
    prompts: Spread
    chunks: int
    missed: int
    missed_share: float
    sessions: int
    within_slo: int
    worst_wait_ms: float
    wasted_s: float
    background: int


class Round(msgspec.Struct, frozen=True):
    """Both sides at one load. `cap`: part of the device that admission hands out; the same sessions try on both.

    mix "plain": only interactive sessions that never redirect, to see what is left without classes and cancels.
    """

    card: str
    cap: float
    mix: str
    slo_ms: float
    device_busy: float
    refused: int
    step: Side
    request: Side
    verdict: str


class Report(msgspec.Struct, frozen=True):
    """The falsifier: step level against request level."""

    trace: str
    seconds: float
    visits: int
    origins: dict[str, str]
    rounds: tuple[Round, ...]


def falsify(duty: DutyCycle, max_rows: int = 4, seed: int = 0) -> Report:
    """Every card at every load, both policies in one go."""
    rules = Rules(max_rows=max_rows, ageing=2.0, seed=seed)
    mixes = (*(("all", cap, duty) for cap in LOADS), ("plain", LOADS[-1], plain(duty)))
    rounds = tuple(_round(cycle, card, cap, mix, rules) for card in CARDS for mix, cap, cycle in mixes)
    origins = {card.name: card.origin for card in CARDS}
    return Report(duty.made_by, duty.seconds, len(duty.visits), origins, rounds)


def slo(card: CardPrices) -> float:
    """Seconds from key to frame that a session may have at its 95th percentile: a chunk's length and 1.5 prices."""
    return card.chunk_seconds + 1.5 * card.chunk_price


def plain(duty: DutyCycle) -> DutyCycle:
    """The interactive visits alone, without redirects."""
    visits = tuple(
        msgspec.structs.replace(visit, moments=tuple(m for m in visit.moments if m.act is not Act.REDIRECT))
        for visit in duty.visits
        if visit.latency_class is LatencyClass.INTERACTIVE
    )
    return msgspec.structs.replace(duty, visits=visits)


def _round(duty: DutyCycle, card: CardPrices, cap: float, mix: str, rules: Rules) -> Round:
    tallies = {policy: Contest(duty, card, policy, cap, rules).run() for policy in Policy}
    step, request = (_side(policy, tallies[policy], slo(card)) for policy in Policy)
    busy = tallies[Policy.STEP].busy / duty.seconds
    return Round(
        card.name, cap, mix, slo(card) * 1e3, busy, tallies[Policy.STEP].refused, step, request, verdict(step, request)
    )


def _side(policy: Policy, tally: Tally, bound: float) -> Side:
    guaranteed = [v for v in tally.visitors if v.visit.latency_class is not LatencyClass.BACKGROUND]
    chunks, missed = sum(v.chunks for v in guaranteed), sum(v.missed for v in guaranteed)
    return Side(
        policy=policy,
        keys=spread(tally.latencies[Act.KEY]),
        redirects=spread(tally.latencies[Act.REDIRECT]),
        prompts=spread(tally.latencies[Act.PROMPT]),
        chunks=chunks,
        missed=missed,
        missed_share=missed / max(1, chunks),
        sessions=len(guaranteed),
        within_slo=sum(_kept(v, bound) for v in guaranteed),
        worst_wait_ms=tally.worst_wait * 1e3,
        wasted_s=tally.wasted,
        background=sum(v.chunks for v in tally.visitors) - chunks,
    )


def _kept(visitor: Visitor, bound: float) -> bool:
    on_time = visitor.missed <= (1 - ON_TIME) * visitor.chunks
    return on_time and (not visitor.latencies or quantile(visitor.latencies, 0.95) <= bound)


def spread(seconds: list[float]) -> Spread:
    p50, p95, p99 = (round(quantile(seconds, q) * 1e3, 2) for q in (0.5, 0.95, 0.99))
    return Spread(len(seconds), p50, p95, p99)


def quantile(values: list[float], q: float) -> float:
    """Nearest rank; 0 of nothing."""
    return sorted(values)[math.ceil(q * len(values)) - 1] if values else 0.0


def verdict(step: Side, request: Side) -> str:
    """Sessions within SLO decide, then missed deadlines, then the 99th percentile of keys, each beyond 2 %."""
    figures = (
        ("sessions within SLO", float(step.within_slo), float(request.within_slo), True),
        ("missed deadlines", float(step.missed), float(request.missed), False),
        ("key to frame p99", step.keys.p99, request.keys.p99, False),
    )
    for name, ours, theirs, more in figures:
        if abs(ours - theirs) > 0.02 * max(ours, theirs):
            winner = Policy.STEP if (ours > theirs) is more else Policy.REQUEST
            return f"{winner} wins by {name}: step {ours:g}, request {theirs:g}"
    return "no difference beyond 2 %"


def table(report: Report) -> Group:
    """The report for a terminal: two lines a round and who won it."""
    shown = Table(title=f"{report.visits} visits in {report.seconds:g} s, ms from act to frame", title_justify="left")
    for column in ("card", "cap", "mix", "policy", "key p50/p95/p99", "redirect p95", "missed", "in SLO", "worst wait"):
        shown.add_column(column)
    for entry in report.rounds:
        for side in (entry.step, entry.request):
            shown.add_row(
                entry.card,
                f"{entry.cap:.0%}",
                entry.mix,
                side.policy,
                f"{side.keys.p50:.1f} / {side.keys.p95:.1f} / {side.keys.p99:.1f}",
                f"{side.redirects.p95:.1f}",
                f"{side.missed} ({side.missed_share:.2%})",
                f"{side.within_slo} of {side.sessions}",
                f"{side.worst_wait_ms:.0f}",
            )
        shown.add_section()
    verdicts = [f"{entry.card} at {entry.cap:.0%}, {entry.mix}: {entry.verdict}" for entry in report.rounds]
    return Group(shown, *verdicts, *(f"{name}: {origin}" for name, origin in report.origins.items()))
