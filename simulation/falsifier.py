"""Both policies on the same traces, prices and engine, side by side, and a plain sentence about who wins.

Each trace is one paired trial. A figure decides when it differs by more than 2 % over all traces together and the
traces agree: by the sign test (exact binomial, ties left out) chance alone would say so in one case of twenty at most.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
from rich.console import Group
from rich.table import Table

from ..engine.spec import Policy
from .figures import Spread, guaranteed, slo, took, within_slo
from .simulation import Played, Setup, play
from .trace import Act, Trace

CHANCE = 0.05
PAIRS = (("drive", "epyc-core"), ("longlive-1.3b", "h200"), ("matrix-game-2-universal", "h100"))


class Side(msgspec.Struct, frozen=True):
    """One policy's result over some traces. `sessions`: let in, background left out; `background`: its chunks made."""

    policy: Policy
    keys: Spread
    redirects: Spread
    prompts: Spread
    chunks: int
    missed: int
    missed_share: float
    sessions: int
    within_slo: int
    utilisation: float
    background: int


class Round(msgspec.Struct, frozen=True):
    """One card on one device, all traces together. `within_slo`: of each trace, sessions by step and by request."""

    card: str
    device: str
    origin: str
    holds: int
    slo_ms: float
    visits: int
    step: Side
    request: Side
    within_slo: tuple[tuple[int, int], ...]
    verdict: str


class FalsifierReport(msgspec.Struct, frozen=True):
    """Step level against request level."""

    traces: tuple[str, ...]
    seconds: float
    rounds: tuple[Round, ...]


def falsify(setups: Sequence[Setup], traces: Sequence[Trace]) -> FalsifierReport:
    """Every setup on every trace under both policies; a setup is of one card."""
    rounds = tuple(_round(setup, traces) for setup in setups)
    return FalsifierReport(tuple(trace.made_by for trace in traces), sum(trace.seconds for trace in traces), rounds)


def _round(setup: Setup, traces: Sequence[Trace]) -> Round:
    (prices,) = setup.cards
    played = {
        policy: [play(replace(setup, spec=replace(setup.spec, policy=policy)), trace) for trace in traces]
        for policy in Policy
    }
    bound = slo(prices)
    trials = [
        (_side(Policy.STEP, [ours], bound), _side(Policy.REQUEST, [theirs], bound))
        for ours, theirs in zip(played[Policy.STEP], played[Policy.REQUEST], strict=True)
    ]
    step, request = (_side(policy, played[policy], bound) for policy in (Policy.STEP, Policy.REQUEST))
    return Round(
        card=prices.card.name,
        device=setup.device,
        origin=prices.origin,
        holds=played[Policy.STEP][0].sessions_max[prices.card.name],
        slo_ms=bound * 1e3,
        visits=sum(len(trace.visits) for trace in traces),
        step=step,
        request=request,
        within_slo=tuple((a.within_slo, b.within_slo) for a, b in trials),
        verdict=verdict(step, request, trials),
    )


def _side(policy: Policy, played: Sequence[Played], bound: float) -> Side:
    everybody = [person for one in played for person in one.people]
    people = guaranteed(everybody)
    chunks, missed = sum(person.chunks for person in people), sum(person.missed for person in people)
    return Side(
        policy=policy,
        keys=took(people, Act.KEY),
        redirects=took(people, Act.REDIRECT),
        prompts=took(people, Act.PROMPT),
        chunks=chunks,
        missed=missed,
        missed_share=missed / max(1, chunks),
        sessions=len(people),
        within_slo=sum(within_slo(person, bound) for person in people),
        utilisation=sum(sum(one.worked.values()) for one in played) / sum(one.trace.seconds for one in played),
        background=sum(person.chunks for person in everybody) - chunks,
    )


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


def table(report: FalsifierReport) -> Group:
    """The report for a terminal: two lines a round and who won it."""
    shown = Table(
        title=f"{len(report.traces)} traces, {report.seconds:g} s, ms from act to frame", title_justify="left"
    )
    for column in ("card on device", "policy", "key p50/p95/p99", "redirect p95", "missed", "in SLO", "at work"):
        shown.add_column(column)
    for entry in report.rounds:
        for side in (entry.step, entry.request):
            shown.add_row(
                f"{entry.card} on {entry.device}",
                side.policy,
                f"{side.keys.p50:.1f} / {side.keys.p95:.1f} / {side.keys.p99:.1f}",
                f"{side.redirects.p95:.1f}",
                f"{side.missed} ({side.missed_share:.2%})",
                f"{side.within_slo} of {side.sessions}",
                f"{side.utilisation:.0%}",
            )
        shown.add_section()
    verdicts = [
        f"{entry.card} on {entry.device}, which holds {entry.holds}: {entry.verdict}" for entry in report.rounds
    ]
    return Group(shown, *verdicts, *(f"{entry.card}: {entry.origin}" for entry in report.rounds))
