"""The scheduler picks by latest start, batches what is compatible and in time, and keeps the device free when asked."""

import math
from dataclasses import replace

from worldroom.engine.api import LatencyClass
from worldroom.engine.scheduling.costs import Costs, StepKey
from worldroom.engine.scheduling.deadlines import draw
from worldroom.engine.scheduling.scheduler import choose
from worldroom.engine.scheduling.ticket import Rules, Ticket
from worldroom.engine.spec import Policy
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.recipe import Precision

DENOISE = StepKey("drive", "chunk_rollout", StepKind.DENOISE, (8,), Precision.FP32)
DECODE = StepKey("drive", "chunk_rollout", StepKind.DECODE, (8,), Precision.FP32)
RULES = Rules(max_rows=4, ageing=2.0, seed=7)
NEVER = math.inf


def prices(one: float = 0.010, two: float = 0.012) -> Costs:
    costs = Costs()
    for key in (DENOISE, DECODE):
        costs.observe(key, 1, one)
        costs.observe(key, 2, two)
    return costs


def ticket(number: int, deadline: float, remaining: float = 0.010, key: StepKey = DENOISE, **more: object) -> Ticket:
    fields = {"latency_class": LatencyClass.INTERACTIVE, "queued": 0.0, "latest_start": deadline - remaining, **more}
    return Ticket(number=number, session=f"s{number}", key=key, deadline=deadline, remaining=remaining, **fields)


def numbers(decision: object) -> list[int]:
    assert isinstance(decision, tuple), decision
    return [chosen.number for chosen in decision]


def test_an_empty_queue_waits_for_ever() -> None:
    assert choose([], 5.0, prices(), NEVER, RULES) == NEVER


def test_the_latest_start_counts_not_the_deadline() -> None:
    near_but_short = ticket(1, deadline=1.00, remaining=0.010, key=DECODE)
    far_but_long = ticket(2, deadline=1.02, remaining=0.040)
    assert numbers(choose([near_but_short, far_but_long], 0.9, prices(), NEVER, RULES)) == [2]


def test_a_chunk_that_began_first_is_not_overtaken_by_its_equal_half_way() -> None:
    half_done = ticket(1, deadline=1.000, remaining=0.010, key=DECODE, latest_start=0.960)
    just_begun = ticket(2, deadline=1.002, remaining=0.040, latest_start=0.962)
    assert numbers(choose([half_done, just_begun], 0.985, prices(), NEVER, RULES)) == [1]


def test_compatible_steps_share_a_batch_while_both_are_in_time() -> None:
    assert numbers(choose([ticket(1, 1.000), ticket(2, 1.001)], 0.985, prices(), NEVER, RULES)) == [1, 2]


def test_a_batch_never_makes_its_leader_late() -> None:
    leader, other = ticket(1, 1.000), ticket(2, 1.005)
    assert numbers(choose([leader, other], 0.989, prices(), NEVER, RULES)) == [1]


def test_a_batch_counts_what_every_member_still_has_to_do() -> None:
    leader, long_way = ticket(1, 1.0, remaining=0.05), ticket(2, 1.0, remaining=0.049)
    assert numbers(choose([leader, long_way], 0.948, prices(), NEVER, RULES)) == [1, 2]
    assert numbers(choose([leader, long_way], 0.949, prices(), NEVER, RULES)) == [1]


def test_other_kinds_shapes_and_cards_stay_out_of_the_batch() -> None:
    wide = StepKey("drive", "chunk_rollout", StepKind.DENOISE, (16,), Precision.FP32)
    other = StepKey("toy", "chunk_rollout", StepKind.DENOISE, (8,), Precision.FP32)
    costs = prices()
    costs.observe(wide, 1, 0.01)
    costs.observe(other, 1, 0.01)
    queue = [ticket(1, 1.0), ticket(2, 1.1, key=wide), ticket(3, 1.1, key=other), ticket(4, 1.1, key=DECODE)]
    assert numbers(choose(queue, 0.5, costs, NEVER, RULES)) == [1]


def test_a_batch_has_at_most_max_rows() -> None:
    queue = [ticket(n, 9.0) for n in range(9)]
    assert len(numbers(choose(queue, 0.0, prices(), NEVER, RULES))) == 4


def test_equals_are_drawn_by_the_seed_alone() -> None:
    queue = [ticket(n, 1.0, key=DENOISE) for n in range(6)]
    one_row = Rules(max_rows=1, ageing=2.0, seed=7)
    drawn = {numbers(choose(queue, 0.0, prices(), NEVER, one_row))[0]}
    drawn |= {numbers(choose(list(reversed(queue)), 0.0, prices(), NEVER, one_row))[0]}
    assert len(drawn) == 1
    seeds = {numbers(choose(queue, 0.0, prices(), NEVER, Rules(max_rows=1, ageing=2.0, seed=s)))[0] for s in range(40)}
    assert seeds == {0, 1, 2, 3, 4, 5}


def test_slack_work_leaves_the_device_free_for_the_next_interactive_chunk() -> None:
    stream = ticket(1, deadline=2.0, latency_class=LatencyClass.STREAM)
    assert choose([stream], 0.995, prices(), 1.0, RULES) == 1.0
    assert numbers(choose([stream], 0.985, prices(), 1.0, RULES)) == [1]


def test_slack_work_that_became_urgent_no_longer_waits() -> None:
    stream = ticket(1, deadline=1.005, latency_class=LatencyClass.STREAM)
    assert numbers(choose([stream], 0.995, prices(), 1.0, RULES)) == [1]


def test_background_work_yields_and_then_ages() -> None:
    background = ticket(1, deadline=NEVER, latency_class=LatencyClass.BACKGROUND, queued=0.0)
    interactive = ticket(2, deadline=1.5)
    assert numbers(choose([background, interactive], 1.0, prices(), NEVER, RULES))[0] == 2
    aged = ticket(3, deadline=2.5)
    assert numbers(choose([background, aged], 2.1, prices(), NEVER, RULES))[0] == 1


def test_a_long_step_that_can_wait_lets_a_tight_deadline_pass() -> None:
    costs = prices()
    costs.observe(DECODE, 1, 0.100)
    long_step = ticket(1, deadline=1.200, remaining=0.150, key=DECODE, latest_start=0.95)
    tight = ticket(2, deadline=1.010, remaining=0.010, latest_start=1.000)
    assert numbers(choose([long_step, tight], 0.950, costs, NEVER, RULES)) == [2]


def test_a_long_step_that_cannot_wait_starts_and_so_does_one_that_harms_nobody() -> None:
    costs = prices()
    costs.observe(DECODE, 1, 0.100)
    urgent = ticket(1, deadline=1.105, remaining=0.150, key=DECODE)
    tight = ticket(2, deadline=1.010, remaining=0.010, latest_start=1.000)
    assert numbers(choose([urgent, tight], 0.950, costs, NEVER, RULES)) == [1]
    late_anyway = ticket(3, deadline=0.951, remaining=0.010, latest_start=1.000)
    harmless = ticket(4, deadline=1.200, remaining=0.150, key=DECODE, latest_start=0.95)
    assert numbers(choose([harmless, late_anyway], 0.950, costs, NEVER, RULES)) == [4]


def test_aged_background_work_yields_to_nobody() -> None:
    costs = prices()
    costs.observe(DECODE, 1, 0.100)
    aged = ticket(1, deadline=NEVER, key=DECODE, latency_class=LatencyClass.BACKGROUND, queued=0.0)
    tight = ticket(2, deadline=2.160, remaining=0.010)
    assert numbers(choose([aged, tight], 2.1, costs, NEVER, RULES)) == [1]


def test_the_order_of_a_hundred_equals_depends_on_the_seed_alone_and_favours_nobody() -> None:
    firsts = [min(range(4), key=lambda n: draw(seed, n)) for seed in range(4000)]
    assert all(900 < firsts.count(n) < 1100 for n in range(4))


def test_request_level_serves_who_came_first_one_row_at_a_time_and_waits_for_nobody() -> None:
    whole = replace(RULES, policy=Policy.REQUEST)
    late_but_first, urgent = ticket(1, deadline=9.0), ticket(2, deadline=1.0)
    assert numbers(choose([urgent, late_but_first], 0.9, prices(), 0.905, whole)) == [1]
