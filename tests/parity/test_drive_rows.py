"""Rows of the drive run together and have, bit for bit, what each has alone: 1 to 16, any ages, slots, ring places."""

from pathlib import Path
from typing import cast

import numpy as np
import pytest
from worldroom.kernels import invariant_matmul
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.loop import StepKind
from worldroom.models.drive import card
from worldroom.models.drive.loop import Cond, Denoised, DenoiseRow, DriveRow
from worldroom.models.drive.runtime import DriveRuntime, load_networks
from worldroom.models.shared.road import autoencoder
from worldroom.models.shared.road.chunk import DecodeRow
from worldroom.tests.drive_card import drive
from worldroom.tests.road_rows import all_together, bits, each_alone, full, view_of

pytestmark = pytest.mark.usefixtures("one_thread")
ROWS, RING = 16, card.WINDOW + 1
KINDS = (StepKind.DENOISE, StepKind.COMMIT_DENOISE, StepKind.DECODE)
Work = list[tuple[DriveRow, CacheView]]


def runtime(weights: str) -> DriveRuntime:
    if weights == "random":
        made = cast(DriveRuntime, drive().runtime)
    else:
        made = DriveRuntime(
            *load_networks(Path(card.__file__).parent / "weights"), lambda text: np.zeros(0, np.float32)
        )
    return full(made, ROWS, RING, card.KV_BYTES_PER_ENTRY)


def work(kind: StepKind) -> Work:
    """Row i lies in slot i; how long its world is and where its entries lie is drawn."""
    dice = np.random.default_rng(2)

    def normal(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return dice.standard_normal(shape, np.float32)

    def cond() -> Cond:
        keys = (dice.random(4) < 0.5).astype(np.float32)
        return Cond(keys, dice.dirichlet(np.ones(12)).astype(np.float32), normal(5))

    made: Work = []
    for slot in range(ROWS):
        view = view_of(slot, RING, dice)
        commit = cond() if kind is StepKind.COMMIT_DENOISE else None
        row: DriveRow = DenoiseRow(normal(43, 32), normal(3, 43, 32), float(dice.random()), cond(), commit)
        made.append((DecodeRow(normal(40, 32)) if kind is StepKind.DECODE else row, view))
    return made


@pytest.mark.parametrize("weights", ["random", "shipped"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_together_are_rows_alone(kind: StepKind, weights: str) -> None:
    apart, together, rows = runtime(weights), runtime(weights), work(kind)
    alone, staged = each_alone(apart, kind, rows)
    assert len(set(alone)) == ROWS
    for count in range(1, ROWS + 1):
        members = [int(i) for i in np.random.default_rng(count).permutation(ROWS)[:count]]
        picked = [rows[i] for i in members]
        if kind is StepKind.COMMIT_DENOISE:
            for _, view in picked:
                together.write_entry(view.slot, view.staged, bytes(card.KV_BYTES_PER_ENTRY))
        wanted = [alone[i] for i in members], [staged[i] for i in members]
        assert all_together(together, kind, picked) == wanted, f"{count} rows"


@pytest.mark.parametrize("kind", KINDS)
def test_nor_does_a_machine_matter_where_parts_may_not_share_a_call(
    kind: StepKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a library gives many parts at once is used for speed alone (kernels/row_grouping.py)."""
    rows = work(kind)[:5]

    def made() -> list[bytes]:
        return [bits(done) for done in runtime("shipped").execute(kind, [row for row, _ in rows], [v for _, v in rows])]

    here = made()
    for place in (autoencoder, invariant_matmul):
        monkeypatch.setattr(place, "_together", lambda *asked: False)
    assert made() == here


def test_a_row_that_is_not_a_number_spoils_itself_alone() -> None:
    kind, apart, together = StepKind.COMMIT_DENOISE, runtime("random"), runtime("random")
    rows = work(kind)[:3]
    cast(DenoiseRow, rows[1][0]).history_3NC[2] = np.nan  # what the committed frame alone is made of
    alone, _ = each_alone(apart, kind, rows)
    made = together.execute(kind, [row for row, _ in rows], [view for _, view in rows])
    assert [bits(result) for result in made] == alone
    assert [bool(np.isfinite(cast(Denoised, result).x0_NC).all()) for result in made] == [True, False, True]
    assert together.read_entry(1, rows[1][1].staged) == bytes(card.KV_BYTES_PER_ENTRY)


def test_rows_that_do_not_belong_in_the_step_are_refused() -> None:
    made = runtime("random")
    ((row, view),) = work(StepKind.DENOISE)[:1]
    for kind in (StepKind.COMMIT_DENOISE, StepKind.DECODE):
        with pytest.raises(ValueError, match=f"a DenoiseRow cannot run in a '{kind}' step"):
            made.execute(kind, [row], [view])
