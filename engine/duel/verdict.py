"""Both policies on the same traces and the same prices, side by side, and a plain sentence about who wins.

Each trace is one paired trial. A figure decides when it differs by more than 2 % over all traces together and the
traces agree: by the sign test (exact binomial, ties left out) chance alone would say so in one case of twenty at most.
"""

import math
from collections.abc import Callable, Sequence

import msgspec
from rich.console import Group
from rich.table import Table

from ..api import LatencyClass
from ..scheduling.scheduler import Rules
from .contest import Contest, Policy, Tally
from .duty import Act, DutyCycle
from .prices import DRIVE, DRIVE_FAST, LONG_CHUNK, CardPrices
from .visitor import Visitor

LOADS = (0.5, 0.7, 0.9)
ON_TIME = 0.99
CHANCE = 0.05
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
    """Both sides at one load, all traces together. `cap`: part of the device that admission hands out; the same
    sessions try on both. `within_slo`: sessions within SLO of each trace, step and request.

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
    within_slo: tuple[tuple[int, int], ...]
    verdict: str


class Report(msgspec.Struct, frozen=True):
    """The falsifier: step level against request level."""

    traces: tuple[str, ...]
    seconds: float
    visits: int
    origins: dict[str, str]
    rounds: tuple[Round, ...]


def falsify(traces: Sequence[DutyCycle], max_rows: int = 4, seed: int = 0) -> Report:
    """Every card at every load on every trace, both policies in one go."""
    rules = Rules(max_rows=max_rows, ageing=2.0, seed=seed)
    plainer = [plain(duty) for duty in traces]
    mixes = (*(("all", cap, traces) for cap in LOADS), ("plain", LOADS[-1], plainer))
    rounds = tuple(_round(cycles, card, cap, mix, rules) for card in CARDS for mix, cap, cycles in mixes)
    origins = {card.name: card.origin for card in CARDS}
    seconds, visits = sum(duty.seconds for duty in traces), sum(len(duty.visits) for duty in traces)
    return Report(tuple(duty.made_by for duty in traces), seconds, visits, origins, rounds)


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


def _round(traces: Sequence[DutyCycle], card: CardPrices, cap: float, mix: str, rules: Rules) -> Round:
    played = [[Contest(duty, card, policy, cap, rules).run() for policy in Policy] for duty in traces]
    bound, seconds = slo(card), sum(duty.seconds for duty in traces)
    trials = [(_side(Policy.STEP, ours, bound), _side(Policy.REQUEST, theirs, bound)) for ours, theirs in played]
    ours, theirs = (merged([pair[n] for pair in played]) for n in (0, 1))
    step, request = _side(Policy.STEP, ours, bound), _side(Policy.REQUEST, theirs, bound)
    within = tuple((a.within_slo, b.within_slo) for a, b in trials)
    said = verdict(step, request, trials)
    return Round(card.name, cap, mix, bound * 1e3, ours.busy / seconds, ours.refused, step, request, within, said)


def merged(tallies: Sequence[Tally]) -> Tally:
    """All of them as one."""
    return Tally(
        latencies={act: [one for tally in tallies for one in tally.latencies[act]] for act in Act},
        visitors=[visitor for tally in tallies for visitor in tally.visitors],
        refused=sum(tally.refused for tally in tallies),
        worst_wait=max(tally.worst_wait for tally in tallies),
        busy=sum(tally.busy for tally in tallies),
        wasted=sum(tally.wasted for tally in tallies),
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


def verdict(step: Side, request: Side, trials: Sequence[tuple[Side, Side]]) -> str:
    """Sessions within SLO decide, then missed deadlines, then the 99th percentile of keys; see the module docstring."""
    figures: tuple[tuple[str, Callable[[Side], float], bool], ...] = (
        ("sessions within SLO", lambda side: side.within_slo, True),
        ("missed deadlines", lambda side: side.missed, False),
        ("key to frame p99", lambda side: side.keys.p99, False),
    )
    for name, figure, more in figures:
        ours, theirs = figure(step), figure(request)
        if abs(ours - theirs) <= 0.02 * max(ours, theirs):
            continue
        ahead = ours > theirs
        agree = sum((figure(a) > figure(b)) is ahead for a, b in trials if figure(a) != figure(b))
        differ = sum(figure(a) != figure(b) for a, b in trials)
        if sign_test(agree, differ) <= CHANCE:
            winner = Policy.STEP if ahead is more else Policy.REQUEST
            traces = f"{agree} of {differ} traces that differ say so"
            return f"{winner} wins by {name}: step {ours:g}, request {theirs:g}; {traces}"
    return f"no difference that {len(trials)} traces agree on"


def sign_test(agree: int, differ: int) -> float:
    """How often as many or more of `differ` fair coins would agree with either side (two-sided, exact)."""
    tail = sum(math.comb(differ, k) for k in range(min(agree, differ - agree) + 1))
    return min(1.0, math.ldexp(2.0 * tail, -differ))


def table(report: Report) -> Group:
    """The report for a terminal: two lines a round and who won it."""
    title = f"{len(report.traces)} traces, {report.visits} visits in {report.seconds:g} s, ms from act to frame"
    shown = Table(title=title, title_justify="left")
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
