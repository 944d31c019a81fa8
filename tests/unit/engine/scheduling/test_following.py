"""What may stand ready behind the batch that runs, and what waits for its rows to come back."""

from worldroom.engine.api import LatencyClass
from worldroom.engine.scheduling.costs import Costs, StepKey
from worldroom.engine.scheduling.staging import may_follow
from worldroom.engine.scheduling.ticket import Rules, Ticket
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.recipe import Precision

DENOISE = StepKey("drive", "chunk_rollout", StepKind.DENOISE, (8,), Precision.FP32)
DECODE = StepKey("drive", "chunk_rollout", StepKind.DECODE, (8,), Precision.FP32)
RULES = Rules(max_rows=4, ageing=2.0, seed=7)


def prices(*by_rows: float) -> Costs:
    costs = Costs()
    for key in (DENOISE, DECODE):
        for rows, seconds in enumerate(by_rows, 1):
            costs.observe(key, rows, seconds)
    return costs


SHARED = prices(0.010, 0.011, 0.012, 0.013)  # four rows cost little more than one
ONE_BY_ONE = prices(0.010, 0.020, 0.030, 0.040)


def ticket(
    latest_start: float,
    then: StepKey | None = None,
    key: StepKey = DENOISE,
    latency_class: LatencyClass = LatencyClass.INTERACTIVE,
) -> Ticket:
    return Ticket(0, "s", key, latency_class, 0.0, latest_start, latest_start + 0.1, 0.05, then)


def test_behind_a_last_step_the_next_one_stands_ready() -> None:
    assert may_follow([ticket(1.0)], [ticket(0.9)], SHARED, RULES)


def test_who_comes_back_more_urgent_is_waited_for() -> None:
    assert not may_follow([ticket(1.0)], [ticket(0.9, then=DECODE)], ONE_BY_ONE, RULES)
    assert may_follow([ticket(0.9)], [ticket(1.0, then=DECODE)], ONE_BY_ONE, RULES)


def test_who_can_join_is_waited_for_where_a_common_batch_is_cheaper() -> None:
    assert not may_follow([ticket(0.9)], [ticket(1.0, then=DENOISE)], SHARED, RULES)
    assert may_follow([ticket(0.9)], [ticket(1.0, then=DENOISE)], ONE_BY_ONE, RULES)


def test_nobody_is_waited_for_who_finds_no_room_in_the_batch() -> None:
    assert may_follow([ticket(0.9)] * 4, [ticket(1.0, then=DENOISE)] * 4, SHARED, RULES)


def test_background_work_that_comes_back_stands_in_line_anew() -> None:
    background = ticket(0.1, then=DECODE, latency_class=LatencyClass.BACKGROUND)
    assert may_follow([ticket(1.0, latency_class=LatencyClass.BACKGROUND)], [background], ONE_BY_ONE, RULES)
