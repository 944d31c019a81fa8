"""Wan's passes as a GPU runs them: its kernels, interpreted, against the CPU's references; and rows that stay apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from worldroom.kernels import chunk_attention, norm_modulate, qk_norm_rope
from worldroom.kernels.backend import INTERPRETED, Backend, Choice
from worldroom.kernels.philox import NoiseKey
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.loop import StepKind
from worldroom.models.wan import random_weights
from worldroom.models.wan.card import SPECS
from worldroom.models.wan.parity.rollout import twin
from worldroom.models.wan.rows import CommitRow, Denoised, DenoiseRow, Move, Prompt, Sharing
from worldroom.models.wan.runtime import WanRuntime
from worldroom.models.wan.spec import Positions, WanShape
from worldroom.tests.kernel_checks import drawn as numbers

torch.set_num_threads(1)
pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton and its interpreter")
SHAPE = WanShape(dim=64, heads=4, layers=2, ffn=96, text_dim=32, text_length=5, freq_dim=32, rows=4, columns=4)
KERNELS = (chunk_attention, norm_modulate, qk_norm_rope)


@pytest.fixture
def on_triton(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the kernels that were asked for, once for each call."""
    asked: list[str] = []

    def chooses(name: str) -> object:
        def choose(x: Tensor) -> Choice:
            asked.append(name)
            return Choice(Backend.TRITON, "as on a GPU")

        return choose

    for module in KERNELS:
        monkeypatch.setattr(module, "choose", chooses(module.__name__.rpartition(".")[2]))
    yield asked


def runtime(positions: Positions, sharing: Sharing) -> WanRuntime:
    spec = replace(twin(SPECS["wan-tiny-random"]), shape=SHAPE)
    spec = replace(spec, plan=replace(spec.rollout, positions=positions))
    made = WanRuntime(spec, random_weights.networks(spec, torch.float32), torch.float32, sharing)
    made.allocate(3)
    made.slab.values.copy_(numbers(tuple(made.slab.values.shape), 1))
    return made


def step(number: int) -> tuple[DenoiseRow, CacheView]:
    """Of the session in that slot, which has committed as many chunks."""
    prompt = Prompt("fox", ((numbers((5, 32), 2), 1.0),))
    x, view = numbers((16, 3, 4, 4), 3 + number), CacheView(number, tuple(range(number)), 3)
    key = NoiseKey(number, 0, 0, 0)
    return DenoiseRow(x, 3, 0.9 - number / 10, 0.5, Move.STAY, key, 3 * number, prompt), view


def velocities(made: WanRuntime, count: int) -> Tensor:
    rows, views = zip(*(step(number) for number in range(count)), strict=True)
    results = made.execute(StepKind.DENOISE, rows, views)
    return torch.stack([result.x_CFHW for result in results if isinstance(result, Denoised)])


def committed(made: WanRuntime) -> Tensor:
    """The slab after two commits."""
    given = [step(number) for number in (1, 2)]
    rows = [CommitRow(row.x_CFHW, row.first_frame, row.prompt) for row, _ in given if row.x_CFHW is not None]
    made.execute(StepKind.COMMIT, rows, [view for _, view in given])
    return made.slab.values


@pytest.mark.parametrize("positions", Positions)
def test_a_pass_on_the_kernels_is_the_pass_of_the_references(
    positions: Positions, request: pytest.FixtureRequest
) -> None:
    expected = velocities(runtime(positions, Sharing.PLAIN), 2), committed(runtime(positions, Sharing.PLAIN))
    asked: list[str] = request.getfixturevalue("on_triton")
    made = velocities(runtime(positions, Sharing.PLAIN), 2), committed(runtime(positions, Sharing.PLAIN))
    assert set(asked) == {"chunk_attention", "norm_modulate", "qk_norm_rope"}
    torch.testing.assert_close(made[0], expected[0], atol=2e-5, rtol=2e-5)
    torch.testing.assert_close(made[1], expected[1], atol=2e-5, rtol=2e-5)
    untouched = torch.ones(3, 6, dtype=torch.bool)
    untouched[1, 3] = untouched[2, 3] = False
    assert torch.equal(made[1][untouched], expected[1][untouched]), "only the staged entries are written"


def test_rows_that_share_a_pass_of_kernels_have_the_bits_they_have_alone(on_triton: list[str]) -> None:
    made = runtime(Positions.ABSOLUTE, Sharing.INVARIANT)
    together = velocities(made, 3)
    assert torch.equal(velocities(made, 2), together[:2])
    for number in range(3):
        row, view = step(number)
        (alone,) = made.execute(StepKind.DENOISE, [row], [view])
        assert isinstance(alone, Denoised) and torch.equal(alone.x_CFHW, together[number])
