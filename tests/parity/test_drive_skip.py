"""The drive's inexact mode on the shipped weights: what a skipped last pass changes stays within the recipe."""

import pytest
from worldroom.models import catalog
from worldroom.models.contract.recipe import RuntimeChoice
from worldroom.models.drive.card import RECIPE
from worldroom.models.drive.skip import SKIP_BELOW, SkipLastPass
from worldroom.models.parity.session import ParitySession
from worldroom.models.shared.road.look import ONE_HOT
from worldroom.training.drive.skipping import Tally, journey, measure, play

pytestmark = pytest.mark.usefixtures("one_thread")
TWO_PASSES = RuntimeChoice(RECIPE.sampler, 2, RECIPE.default.precision)


def test_frames_without_their_last_pass_are_within_half_the_declared_tolerance() -> None:
    """Each against the exact frame from the same state, so that errors do not add up."""
    report = measure((2, 3, 4), (SKIP_BELOW,), worlds=2, frames=12, progress=lambda frames: None)
    assert report.failures() == []
    for row in report.rows:
        assert row.skipped == 0.5, "a look's first frame measures, three skip, the next measures again; in fades all do"
        assert row.residual.max < SKIP_BELOW
        assert 0 < row.error.max <= RECIPE.inexact / 2


def test_what_is_measured_is_what_the_inexact_mode_shows() -> None:
    exact = catalog.load("drive", TWO_PASSES)
    exact.runtime.allocate(1)
    measured = play(exact, SkipLastPass(SKIP_BELOW), 3, 8, Tally())
    served = catalog.load("drive", RuntimeChoice(RECIPE.sampler, 2, RECIPE.default.precision, exact=False))
    assert not served.card.parity.exact and served.card.parity.tolerance == RECIPE.inexact
    served.runtime.allocate(1)
    session = ParitySession(served, 0, 3, journey(3, 8), lambda look: ONE_HOT[int(look)])
    assert [outcome.digest for outcome in session.run()] == measured
    assert session.carry.own.residual > 0
