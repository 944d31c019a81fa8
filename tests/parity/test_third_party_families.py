"""AnyFlow, Matrix-Game and Waypoint climb their ladders: every rung at its figure, bit-equal where it can be."""

import pytest
import torch
from worldroom.models import catalog
from worldroom.models.parity.ladder import ParityCheck, judge

torch.set_num_threads(1)
CARDS = ("anyflow-tiny-random", "matrix-game-tiny-random", "waypoint-tiny-random")
TRIALS = [(name, trial) for name in CARDS for trial in catalog.trials(name)]


@pytest.mark.parametrize(("card", "trial"), TRIALS, ids=[f"{n}: {t.rung} {t.subject}" for n, t in TRIALS])
def test_rung_holds(card: str, trial: ParityCheck) -> None:
    verdict = judge(card, trial)
    if verdict.figure is None:
        pytest.skip(verdict.why)
    assert verdict.ok, verdict
