"""AnyFlow, Matrix-Game and Waypoint climb their ladders: every check at its figure, bit-equal where it can be."""

import pytest
import torch
from worldroom.models import catalog
from worldroom.models.parity.ladder import ParityCheck, judge

torch.set_num_threads(1)
CARDS = ("anyflow-tiny-random", "matrix-game-tiny-random", "waypoint-tiny-random")
CHECKS = [(name, check) for name in CARDS for check in catalog.checks(name)]


@pytest.mark.parametrize(("card", "check"), CHECKS, ids=[f"{n}: {t.level} {t.subject}" for n, t in CHECKS])
def test_check_holds(card: str, check: ParityCheck) -> None:
    verdict = judge(card, check)
    if verdict.figure is None:
        pytest.skip(verdict.why)
    assert verdict.ok, verdict
