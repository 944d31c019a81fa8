"""The dream's loop and runtime on random weights: its own checks, rows together as alone, and what a row may spoil."""

from typing import cast

import numpy as np
import pytest
from msgspec.structs import replace
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.loop import StepKind
from worldroom.models.dream import card
from worldroom.models.dream.loop import Denoised, DenoiseRow, DreamRow, Made
from worldroom.models.dream.parity import checks, loaded
from worldroom.models.dream.runtime import DreamRuntime
from worldroom.models.parity.ladder import ParityCheck
from worldroom.models.shared.road.chunk import DecodeRow
from worldroom.tests.road_rows import all_together, bits, each_alone, full, view_of

pytestmark = pytest.mark.usefixtures("one_thread")
ROWS, RING = 6, card.WINDOW + 1
KINDS = (StepKind.DENOISE, StepKind.COMMIT_DENOISE, StepKind.DECODE)
Work = list[tuple[DreamRow, CacheView]]


@pytest.mark.parametrize("check", checks(), ids=lambda check: str(check.level))
def test_its_own_checks_hold_bit_by_bit(check: ParityCheck) -> None:
    pairs = list(check.run())
    assert len(pairs) > 50
    assert all(np.array_equal(pair.ours, pair.reference) for pair in pairs)


def runtime() -> DreamRuntime:
    return full(cast(DreamRuntime, loaded().runtime), ROWS, RING, card.KV_BYTES_PER_ENTRY)


def work(kind: StepKind) -> Work:
    """Row i lies in slot i; how long its world is and where its entries lie is drawn."""
    rng = np.random.default_rng(2)

    def normal(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return rng.standard_normal(shape, np.float32)

    def made_of() -> Made:
        keys = (rng.random(4) < 0.5).astype(np.float32)
        return Made(keys, rng.dirichlet(np.ones(12)).astype(np.float32), normal(card.NOISE))

    rows: Work = []
    for slot in range(ROWS):
        view = view_of(slot, RING, rng)
        commit = made_of() if kind is StepKind.COMMIT_DENOISE else None
        known = normal(card.STATE) if slot % 2 else None
        row: DreamRow = DenoiseRow(normal(40, 32), normal(3, 40, 32), known, float(rng.random()), made_of(), commit)
        rows.append((DecodeRow(normal(40, 32)) if kind is StepKind.DECODE else row, view))
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_rows_together_are_rows_alone(kind: StepKind) -> None:
    alone = each_alone(runtime(), kind, work(kind))
    assert len(set(alone[0])) == ROWS
    assert all_together(runtime(), kind, work(kind)) == alone


def test_a_row_that_is_not_a_number_spoils_itself_alone() -> None:
    kind, apart, together = StepKind.COMMIT_DENOISE, runtime(), runtime()
    rows = work(kind)[:3]
    cast(DenoiseRow, rows[1][0]).history_3PC[2] = np.nan  # what the committed frame alone is made of
    alone, _ = each_alone(apart, kind, rows)
    made = together.execute(kind, [row for row, _ in rows], [view for _, view in rows])
    assert [bits(result) for result in made] == alone
    assert [bool(np.isfinite(cast(Denoised, result).x0_PC).all()) for result in made] == [True, False, True]
    assert together.read_entry(1, rows[1][1].staged) == bytes(card.KV_BYTES_PER_ENTRY)


def test_rows_that_do_not_belong_in_the_step_are_refused() -> None:
    made = runtime()
    ((row, view),) = work(StepKind.DENOISE)[:1]
    for kind in (StepKind.COMMIT_DENOISE, StepKind.DECODE):
        with pytest.raises(ValueError, match=f"a DenoiseRow cannot run in a '{kind}' step"):
            made.execute(kind, [row], [view])


def test_at_sigma_one_another_noise_is_another_frame() -> None:
    """The noise of the picture and that beside it are both seen."""
    made = runtime()
    ((row, view),) = work(StepKind.DENOISE)[:1]
    row = cast(DenoiseRow, row)
    other = replace(row.made, noise_Z=-row.made.noise_Z)
    rows = [row, replace(row, x_PC=-row.x_PC), replace(row, made=other)]
    rows = [replace(one, sigma=1.0) for one in rows]
    assert len({bits(made.execute(StepKind.DENOISE, [one], [view])[0]) for one in rows}) == 3
