"""Prices: a mean that follows, a conservative figure that forgives one outlier, and honest guesses for what is new."""

import pytest
from worldroom.engine.scheduling.costs import Costs, Estimate, StepKey
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.recipe import Precision

DENOISE = StepKey("drive", "chunk_rollout", StepKind.DENOISE, (8,), Precision.FP32)


def test_one_stall_in_thirty_two_does_not_move_the_conservative_figure() -> None:
    estimate = Estimate()
    for _ in range(31):
        estimate.observe(0.010)
    estimate.observe(0.500)
    assert estimate.conservative == 0.010


def test_a_slow_minute_is_forgotten_after_thirty_two_fast_ones() -> None:
    estimate = Estimate()
    for _ in range(100):
        estimate.observe(0.100)
    for _ in range(31):
        estimate.observe(0.010)
    assert estimate.conservative == 0.010
    assert 0.010 < estimate.mean < 0.014


def test_an_unmeasured_batch_is_priced_row_by_row_from_the_nearest_smaller_one() -> None:
    costs = Costs()
    costs.observe(DENOISE, 1, 0.010)
    costs.observe(DENOISE, 2, 0.012)
    assert costs.price(DENOISE, 1) == 0.010
    assert costs.price(DENOISE, 2) == 0.012
    assert costs.price(DENOISE, 4) == pytest.approx(0.024)


def test_a_new_shape_costs_what_the_dearest_known_one_does() -> None:
    costs = Costs()
    costs.observe(DENOISE, 1, 0.010)
    costs.observe(StepKey("drive", "chunk_rollout", StepKind.DENOISE, (64,), Precision.FP32), 1, 0.050)
    assert costs.price(StepKey("drive", "chunk_rollout", StepKind.DENOISE, (32,), Precision.FP32), 1) == 0.050


def test_a_kind_that_was_never_measured_has_no_price() -> None:
    with pytest.raises(LookupError, match="denoise of card 'drive' was never measured"):
        Costs().price(DENOISE, 1)


def test_forgetting_one_card_leaves_the_others() -> None:
    costs, other = Costs(), StepKey("toy", "chunk_rollout", StepKind.DENOISE, (8,), Precision.INT)
    costs.observe(DENOISE, 1, 0.010)
    costs.observe(other, 1, 0.001)
    costs.forget("drive")
    assert costs.price(other, 1) == 0.001
    with pytest.raises(LookupError):
        costs.price(DENOISE, 1)
