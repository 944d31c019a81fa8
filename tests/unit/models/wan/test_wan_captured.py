"""Whole passes captured and replayed, with a capture that runs on a CPU: same results, full keys, declared buckets."""

from collections.abc import Callable

import msgspec
import pytest
import torch
from torch import Tensor
from worldroom.models import catalog
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.cache_key import key_of
from worldroom.models.contract.loop import StepKind
from worldroom.models.shared.captured import Arguments, Buckets, CapturedPasses, Pass
from worldroom.models.shared.compiled import CompileMismatch
from worldroom.models.wan import random_weights
from worldroom.models.wan.card import SPECS
from worldroom.models.wan.rows import Denoised, DenoiseRow, Sharing
from worldroom.models.wan.runtime import WanRuntime

SPEC = SPECS["wan-tiny-random"]


class FakeCapture:
    """As a graph: what it runs reads and writes the buffers it was made with, and nothing else."""

    def __init__(self, wrong: float = 0.0) -> None:
        self.captures = self.replays = 0
        self._wrong = wrong

    def __call__(self, function: Pass, buffers: Arguments) -> tuple[Callable[[], None], Tensor]:
        self.captures += 1
        made = function(*buffers).clone()

        def replay() -> None:
            self.replays += 1
            made.copy_(function(*buffers) + self._wrong)

        return replay, made


def captured(capture: FakeCapture, buckets: Buckets | None = None) -> CapturedPasses:
    return CapturedPasses(key_of(catalog.load("wan-tiny-random")), capture, 1e-5, buckets)


def denoised(made: WanRuntime, seeds: list[int], past: int = 2) -> list[Tensor]:
    rows, views = [], []
    for slot, seed in enumerate(seeds):
        (row, view), *_ = made.warm_up_rows(StepKind.DENOISE, 1)
        assert isinstance(row, DenoiseRow) and view is not None and row.x_CFHW is not None
        x = torch.randn(row.x_CFHW.shape, generator=torch.Generator().manual_seed(seed))
        rows.append(msgspec.structs.replace(row, x_CFHW=x))
        views.append(CacheView(slot, view.committed[:past], view.staged, view.spare))
    results = made.execute(StepKind.DENOISE, rows, views)
    return [result.x_CFHW for result in results if isinstance(result, Denoised)]


def runtime(passes: CapturedPasses | None) -> WanRuntime:
    networks = random_weights.networks(SPEC, torch.float32)
    made = WanRuntime(SPEC, networks, torch.float32, Sharing.PLAIN, captured=passes)
    made.allocate(4)
    made.slab.values.copy_(torch.randn(made.slab.values.shape, generator=torch.Generator().manual_seed(9)))
    return made


def test_replayed_passes_are_the_eager_ones_at_any_rows_and_window() -> None:
    capture = FakeCapture()
    passes = captured(capture, Buckets((1, 2, 4)))
    ours, eager = runtime(passes), runtime(None)
    for seeds in ([1], [2], [3, 4], [5, 6, 7], [8, 9, 10, 11], [12, 13, 14]):
        for past in (0, 1, 2):
            for a, b in zip(denoised(ours, seeds, past), denoised(eager, seeds, past), strict=True):
                torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
    assert capture.captures == len(passes.keys) == 3 * 3, "three buckets, three window fills"
    assert len({key.digest for key in passes.keys}) == 9 and {key.step for key in passes.keys} == {"denoise"}
    assert capture.replays > capture.captures


def test_what_fits_no_bucket_and_what_writes_runs_eagerly() -> None:
    capture = FakeCapture()
    ours, eager = runtime(captured(capture, Buckets((1,)))), runtime(None)
    for a, b in zip(denoised(ours, [1, 2]), denoised(eager, [1, 2]), strict=True):
        assert torch.equal(a, b)
    (row, view), *_ = ours.warm_up_rows(StepKind.COMMIT, 1)
    ours.execute(StepKind.COMMIT, [row], [view])
    assert capture.captures == 0


def test_a_captured_pass_that_is_wrong_is_an_error_and_never_a_picture() -> None:
    with pytest.raises(CompileMismatch, match=r"'wan-tiny-random@1' captured for denoise is off by"):
        denoised(runtime(captured(FakeCapture(wrong=0.5))), [1])


def test_buckets_are_declared() -> None:
    assert [Buckets().of(rows) for rows in (1, 2, 3, 5, 8, 9)] == [1, 2, 4, 8, 8, None]
