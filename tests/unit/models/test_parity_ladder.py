"""The ladder judges: the figure, the first probe that is off, and what a leak between rows looks like."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from worldroom.models import catalog
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import CHUNK_ROLLOUT, StepKind
from worldroom.models.parity.interleave import interleave_check
from worldroom.models.parity.ladder import (
    Pair,
    ParityCheck,
    ParityDiverged,
    ParityLevel,
    ParityMissing,
    judge,
    max_abs_error,
)
from worldroom.models.toy.card import RECIPE, ToySpec, toy_card
from worldroom.models.toy.loop import Denoised, ToyLoop, ToyResult, ToyRow
from worldroom.models.toy.runtime import ToyRuntime

SPEC = ToySpec(sleeps=False)


def check(*values: tuple[float, float], tolerance: float = 0.1) -> ParityCheck:
    def run() -> Iterator[Pair]:
        for step, (ours, reference) in enumerate(values):
            yield Pair(step, "block 3", "attention", np.array([0.0, ours]), np.array([0.0, reference]))

    return ParityCheck(ParityLevel.C0, "attention", tolerance, run)


def test_the_figure_is_the_largest_error_and_the_first_tap_beyond_the_tolerance_is_named() -> None:
    verdict = judge("net", check((1.0, 1.05), (1.0, 1.5), (1.0, 3.0)))
    assert (verdict.figure, verdict.probes, verdict.ok) == (2.0, 3, False)
    assert verdict.diverged == ParityDiverged(step=1, block="block 3", probe="attention", error=0.5)
    assert judge("net", check((1.0, 1.05))).ok


def test_nothing_compared_is_no_success_and_a_missing_library_is_no_failure() -> None:
    assert judge("net", check()).why == "nothing was compared" and not judge("net", check()).ok

    def run() -> Iterator[Pair]:
        raise ParityMissing("diffusers is not installed")

    verdict = judge("net", ParityCheck(ParityLevel.C0, "vae", 0.0, run))
    assert verdict.ok and verdict.figure is None and verdict.why == "diffusers is not installed"


@pytest.mark.parametrize(
    ("ours", "reference", "error"),
    [
        (np.array([1.0]), np.array([[1.0]]), np.inf),
        (np.array([np.nan]), np.array([1.0]), np.inf),
        (np.array([np.nan, np.inf]), np.array([np.nan, np.inf]), 0.0),
        (np.array([0], np.uint8), np.array([255], np.uint8), 255.0),
        (np.array([2**62], np.int64), np.array([2**62 + 1], np.int64), 1.0),
        (np.zeros((0, 3)), np.zeros((0, 3)), 0.0),
    ],
)
def test_errors_of_odd_values(ours: np.ndarray, reference: np.ndarray, error: float) -> None:
    assert max_abs_error(ours, reference) == error


class LeakyRuntime(ToyRuntime):
    """A row's result depends on how many share its batch."""

    def execute(self, kind: StepKind, rows: Sequence[ToyRow], views: Sequence[CacheView | None]) -> list[ToyResult]:
        results = super().execute(kind, rows, views)
        if kind is StepKind.DENOISE and len(rows) > 1:
            return [Denoised(r.x_C + 1) if isinstance(r, Denoised) else r for r in results]
        return results


class ForgetfulRuntime(ToyRuntime):
    """Every session writes its cache into slot 0."""

    def execute(self, kind: StepKind, rows: Sequence[ToyRow], views: Sequence[CacheView | None]) -> list[ToyResult]:
        return super().execute(kind, rows, [CacheView(0, v.committed, v.staged) if v else None for v in views])


@pytest.mark.parametrize("runtime", [LeakyRuntime, ForgetfulRuntime])
def test_the_interleave_gate_sees_rows_that_see_each_other(runtime: type[ToyRuntime]) -> None:
    def load() -> LoadedCard:
        return LoadedCard(
            toy_card(SPEC), RECIPE.default, "none", {CHUNK_ROLLOUT: ToyLoop(SPEC)}, runtime(SPEC, lambda seconds: None)
        )

    verdict = judge("toy", interleave_check(toy_card(SPEC), load))
    assert not verdict.ok and verdict.diverged is not None
    assert verdict.diverged.block.startswith("order 0, session") and verdict.diverged.probe in ("frames", "digest")


def test_the_command_prints_every_rung_and_knows_its_cards(tmp_path: Path) -> None:
    command = Path(sys.executable).parent / "worldroom"
    done = subprocess.run([command, "parity", "toy", "--json"], capture_output=True, text=True, timeout=120)
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["ok"]
    assert [verdict["level"] for verdict in report["verdicts"]] == ["C1", "interleave"]
    done = subprocess.run([command, "parity", "tyo"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "did you mean 'toy'?" in done.stderr


def test_every_card_that_runs_here_has_a_ladder_with_a_rollout() -> None:
    local = ["toy", "drive", "dream", *catalog.random_weights()]
    assert [name for name in local if ParityLevel.C1 not in {check.level for check in catalog.checks(name)}] == []
