"""The comparison of policies is fair, repeatable, on the real engine, and says who won."""

import asyncio
import itertools
from dataclasses import replace

import msgspec
from worldroom.engine.api import LatencyClass
from worldroom.engine.spec import EngineSpec, Policy
from worldroom.models.devices import H100
from worldroom.simulation.duty_cycle import duty_cycle, several
from worldroom.simulation.falsifier import Side, falsify, sign_test, verdict
from worldroom.simulation.figures import Spread, quantile
from worldroom.simulation.prices import CardPrices
from worldroom.simulation.roofline import computed
from worldroom.simulation.simulation import Played, Setup, play
from worldroom.simulation.trace import DUTY_CYCLE, Act, Moment, Trace, Visit, load
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, started, steady, toy

MATRIX = computed("matrix-game-2-universal", H100)
STEADY = replace(MATRIX, steps={kind: replace(price, scatter=(1.0,)) for kind, price in MATRIX.steps.items()})


def on_h100(policy: Policy, prices: CardPrices = MATRIX) -> Setup:
    return Setup((prices,), "h100", EngineSpec(slots=8, memory=80 * 10**9, policy=policy))


def both(trace: Trace, prices: CardPrices = MATRIX) -> tuple[Played, Played]:
    step, request = (play(on_h100(policy, prices), trace) for policy in (Policy.STEP, Policy.REQUEST))
    return step, request


def took(played: Played, act: Act) -> list[float]:
    return [seconds for person in played.people for seconds in person.took[act]]


def test_the_trace_in_the_package_is_what_its_command_writes() -> None:
    assert load().made_by == "python -m worldroom.simulation.duty_cycle 300 1"
    assert msgspec.json.encode(duty_cycle(300.0, 1)) + b"\n" == DUTY_CYCLE.read_bytes()


def test_the_same_trace_twice_gives_the_same_figures() -> None:
    one, other = (play(on_h100(Policy.STEP), duty_cycle(60.0, 5)) for _ in range(2))
    assert [person.took for person in one.people] == [person.took for person in other.people]
    assert one.worked == other.worked
    assert sum(one.worked.values()) > 0


def test_a_session_alone_fares_the_same_under_both_policies() -> None:
    keys = tuple(Moment(4 + 0.37 * n, Act.KEY) for n in range(20))
    step, request = both(Trace("here", 15.0, (Visit("a", LatencyClass.INTERACTIVE, 0.0, 15.0, keys),)), STEADY)
    assert step.people[0].missed == request.people[0].missed == 0
    assert [round(x, 6) for x in took(step, Act.KEY)] == [round(x, 6) for x in took(request, Act.KEY)]
    assert len(took(step, Act.KEY)) == 20


def test_a_redirect_while_a_chunk_runs_is_seen_sooner_by_step() -> None:
    redirects = tuple(Moment(3 + 1.531 * n, Act.REDIRECT) for n in range(12))
    step, request = both(Trace("here", 25.0, (Visit("a", LatencyClass.INTERACTIVE, 0.0, 25.0, redirects),)))
    assert len(took(step, Act.REDIRECT)) == len(took(request, Act.REDIRECT)) == 12
    assert quantile(took(step, Act.REDIRECT), 0.95) < quantile(took(request, Act.REDIRECT), 0.95)
    assert sum(person.cancelled for person in step.people) > sum(person.cancelled for person in request.people)


def test_at_request_level_nothing_runs_between_two_steps_of_a_chunk() -> None:
    """Three sessions that always meet: each chunk of four steps of the toy runs whole, or they take turns."""

    async def ran(policy: Policy) -> list[str]:
        spec = EngineSpec(slots=3, max_rows=1, share_cap=1.0, policy=policy)
        engine, _ = await started(steady(0.002), (toy(),), spec)
        people = [Person(engine, name) for name in "abc"]
        for person in people:
            await person.open()
        await asyncio.sleep(3)
        assert all(len(person.done) > 60 and not person.faults for person in people)
        chunks = [step.sessions[0] for step in engine.steps() if step.kind != "prompt_encode" and step.sessions[0]]
        await engine.close()
        return chunks

    whole, stepwise = (run(ran(policy)) for policy in (Policy.REQUEST, Policy.STEP))
    lengths = [len(list(steps)) for _, steps in itertools.groupby(whole)]
    assert all(length % 4 == 0 for length in lengths[3:])
    assert any(len(list(steps)) % 4 for _, steps in itertools.groupby(stepwise))


def side(policy: Policy, within: int, missed: int, p99: float) -> Side:
    keys = Spread(100, 10.0, 20.0, p99)
    return Side(policy, keys, keys, keys, 1000, missed, missed / 1000, 9, within, 0.5, 0)


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


def test_several_traces_are_told_apart_and_counted_together() -> None:
    assert [trace.made_by.split()[-1] for trace in several(3)] == ["1", "2", "3"]
    assert several(1)[0] == load()
    short = [duty_cycle(60.0, seed) for seed in (1, 2)]
    (entry,) = falsify([on_h100(Policy.STEP)], short).rounds
    assert entry.visits == sum(len(trace.visits) for trace in short)
    assert len(entry.within_slo) == 2
    assert sum(step for step, _ in entry.within_slo) == entry.step.within_slo
