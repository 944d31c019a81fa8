"""The tutorial's family runs as it is printed: its checks hold, and the engine's own rules about cards hold for it."""

import re
import sys
from types import ModuleType

import pytest
from worldroom.models.contract.loop import StepKind
from worldroom.models.parity.ladder import judge
from worldroom.tests.paths import ROOT

PAGE = ROOT / "docs" / "ADD_A_MODEL.md"


@pytest.fixture(scope="module")
def ripple() -> ModuleType:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    module = ModuleType("ripple")
    sys.modules["ripple"] = module
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    return module


def test_it_is_about_a_hundred_lines(ripple: ModuleType) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    written = [line for line in code.splitlines() if line.strip() and not line.startswith(("import", "from", "#"))]
    assert 90 <= len(written) <= 125


def test_its_rungs_hold(ripple: ModuleType) -> None:
    verdicts = [judge("ripple", check) for check in ripple.FAMILY.checks(ripple.CARD)]
    assert [(verdict.level, verdict.ok) for verdict in verdicts] == [("C1", True), ("interleave", True)], verdicts


def test_its_card_is_sound_and_its_runtime_prices_every_step(ripple: ModuleType) -> None:
    card = ripple.CARD
    card.recipe.check(card.recipe.default)
    loaded = ripple.FAMILY.load(card, card.recipe.default, None)
    loaded.runtime.allocate(2)
    kinds = card.loops[0].steps
    assert kinds == (StepKind.DENOISE, StepKind.COMMIT, StepKind.DECODE)
    for kind in kinds:
        rows = loaded.runtime.warm_up_rows(kind, 2)
        assert len(loaded.runtime.execute(kind, [row for row, _ in rows], [view for _, view in rows])) == 2
