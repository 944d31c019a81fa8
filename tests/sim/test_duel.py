"""The contest between policies is fair, repeatable and says who won; its trace is what its command writes."""

import msgspec
from worldroom.engine.api import LatencyClass
from worldroom.engine.duel.contest import Contest, Policy
from worldroom.engine.duel.duty import DEFAULT, Act, DutyCycle, Moment, Visit, load
from worldroom.engine.duel.make_duty_cycle import make
from worldroom.engine.duel.prices import DRIVE_FAST, LONG_CHUNK
from worldroom.engine.duel.verdict import Side, Spread, quantile, verdict
from worldroom.engine.scheduler import Rules

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
    step, request = side(Policy.STEP, 8, 9, 50.0), side(Policy.REQUEST, 9, 1, 20.0)
    assert verdict(step, request) == "request wins by sessions within SLO: step 8, request 9"
    assert verdict(side(Policy.STEP, 9, 0, 50.0), side(Policy.REQUEST, 9, 4, 50.0)).startswith("step wins by missed")
    even = side(Policy.STEP, 9, 4, 50.0), side(Policy.REQUEST, 9, 4, 50.5)
    assert verdict(*even) == "no difference beyond 2 %"
