"""The contest between policies is fair, repeatable and says who won; its trace is what its command writes."""

import msgspec
import pytest
from worldroom.engine.api import LatencyClass
from worldroom.engine.duel import verdict as module
from worldroom.engine.duel.contest import Contest, Policy
from worldroom.engine.duel.duty import DEFAULT, Act, DutyCycle, Moment, Visit, load
from worldroom.engine.duel.make_duty_cycle import make, published
from worldroom.engine.duel.prices import DRIVE_FAST, LONG_CHUNK
from worldroom.engine.duel.verdict import Side, Spread, falsify, quantile, sign_test, verdict
from worldroom.engine.scheduling.scheduler import Rules

RULES = Rules(max_rows=4, ageing=2.0, seed=0)


def test_the_trace_in_the_package_is_what_its_command_writes() -> None:
    duty = load()
    assert duty.made_by == "python -m worldroom.engine.duel.make_duty_cycle 300 1"
    assert msgspec.json.encode(make(300.0, 1)) + b"\n" == DEFAULT.read_bytes()


def test_the_same_contest_twice_gives_the_same_figures() -> None:
    duty = make(40.0, 5)
    tallies = [Contest(duty, LONG_CHUNK, policy, 0.9, RULES).run() for policy in (Policy.STEP, Policy.STEP)]
    assert tallies[0].latencies == tallies[1].latencies
    assert tallies[0].busy == tallies[1].busy > 0


def test_a_session_alone_fares_the_same_under_both_policies() -> None:
    keys = tuple(Moment(1 + 0.37 * n, Act.KEY) for n in range(20))
    duty = DutyCycle("here", 12.0, (Visit("a", LatencyClass.INTERACTIVE, 0.0, 12.0, keys),))
    step, request = (Contest(duty, DRIVE_FAST, policy, 0.9, RULES).run() for policy in Policy)
    assert step.visitors[0].missed == request.visitors[0].missed == 0
    assert [round(x, 6) for x in step.latencies[Act.KEY]] == [round(x, 6) for x in request.latencies[Act.KEY]]
    assert len(step.latencies[Act.KEY]) == 20


def test_a_redirect_while_a_chunk_runs_is_seen_sooner_by_step() -> None:
    redirects = tuple(Moment(2 + 1.531 * n, Act.REDIRECT) for n in range(12))
    duty = DutyCycle("here", 25.0, (Visit("a", LatencyClass.INTERACTIVE, 0.0, 25.0, redirects),))
    step, request = (Contest(duty, LONG_CHUNK, policy, 0.9, RULES).run() for policy in Policy)
    assert quantile(step.latencies[Act.REDIRECT], 0.95) < quantile(request.latencies[Act.REDIRECT], 0.95)
    assert step.wasted < request.wasted


def side(policy: Policy, within: int, missed: int, p99: float) -> Side:
    keys = Spread(100, 10.0, 20.0, p99)
    return Side(policy, keys, keys, keys, 1000, missed, missed / 1000, 9, within, 1.0, 0.0, 0)


def test_the_verdict_is_plain_whoever_wins() -> None:
    step, request = side(Policy.STEP, 48, 9, 50.0), side(Policy.REQUEST, 54, 1, 20.0)
    better = [(side(Policy.STEP, 8, 9, 50.0), side(Policy.REQUEST, 9, 1, 20.0))] * 6
    assert verdict(step, request, better) == (
        "request wins by sessions within SLO: step 48, request 54; 6 of 6 traces that differ say so"
    )
    even = side(Policy.STEP, 9, 4, 50.0), side(Policy.REQUEST, 9, 4, 50.5)
    assert verdict(*even, [even] * 12) == "no difference that 12 traces agree on"


def test_one_session_in_one_trace_is_no_verdict() -> None:
    lucky = side(Policy.STEP, 9, 4, 50.0), side(Policy.REQUEST, 8, 4, 50.0)
    even = side(Policy.STEP, 8, 4, 50.0), side(Policy.REQUEST, 8, 4, 50.0)
    pooled = side(Policy.STEP, 25, 12, 50.0), side(Policy.REQUEST, 24, 12, 50.0)
    assert verdict(*pooled, [lucky, even, even]) == "no difference that 3 traces agree on"


def test_the_sign_test_counts_coins() -> None:
    assert [sign_test(6, 6), sign_test(5, 6), sign_test(3, 6), sign_test(0, 0)] == [0.03125, 0.21875, 1.0, 1.0]


def test_several_traces_are_told_apart_and_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CARDS", (DRIVE_FAST,))
    traces = published(3)
    assert [duty.made_by.split()[-1] for duty in traces] == ["1", "2", "3"]
    short = [make(60.0, seed) for seed in (1, 2)]
    report = falsify(short)
    assert report.visits == sum(len(duty.visits) for duty in short)
    for entry in report.rounds:
        assert len(entry.within_slo) == 2
        assert sum(step for step, _ in entry.within_slo) == entry.step.within_slo
