"""Moves of the sampler: the kernel's bits are the formula's, rows are independent, the ends are exact."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from worldroom.kernels import noise
from worldroom.kernels.backend import Backend
from worldroom.kernels.checks import BadInput
from worldroom.kernels.philox import NoiseKey
from worldroom.kernels.sampler_step import SamplerMove, sampler_step
from worldroom.tests.kernel_checks import drawn, poisoned

sigma = st.floats(0, 1, width=32)
key = st.none() | st.builds(
    NoiseKey, st.integers(0, 2**64 - 1), st.integers(0, 9), st.integers(0, 99), st.integers(0, 4)
)
step = st.builds(SamplerMove, sigma, sigma, key)


@given(st.lists(step, min_size=1, max_size=3), st.integers(1, 50), st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_the_kernel_is_the_formula_to_the_bit(steps: list[SamplerMove], count: int, seed: int) -> None:
    x, velocity = (
        drawn((2, count, len(steps)), seed).transpose(1, 2).transpose(0, 1),
        drawn((len(steps), 2, count), seed),
    )
    with poisoned():
        made = sampler_step(x, velocity, steps, backend=Backend.TRITON)
    assert torch.equal(made, sampler_step(x, velocity, steps))


def test_literal_moves() -> None:
    x, v = torch.tensor([[2.0, 4.0]]), torch.tensor([[1.0, -2.0]])
    assert sampler_step(x, v, [SamplerMove(0.5, 0.25, None)]).tolist() == [[1.75, 4.5]]
    assert sampler_step(x, v, [SamplerMove(0.5, 0.0, None)]).tolist() == [[1.5, 5.0]]
    assert sampler_step(x, v, [SamplerMove(0.5, 0.0, NoiseKey(1, 2, 3, 4))]).tolist() == [[1.5, 5.0]]
    fresh = noise.reference(NoiseKey(1, 2, 3, 4), 2).double()
    wanted = (0.75 * torch.tensor([1.5, 5.0], dtype=torch.float64) + 0.25 * fresh).float()
    assert torch.equal(sampler_step(x, v, [SamplerMove(0.5, 0.25, NoiseKey(1, 2, 3, 4))])[0], wanted)


@pytest.mark.parametrize("backend", Backend)
def test_a_row_alone_is_the_row_in_a_batch(backend: Backend) -> None:
    x, v = drawn((16, 3, 3), 0), drawn((16, 3, 3), 1)
    steps = [SamplerMove(1 - n / 20, 0.9 - n / 20, NoiseKey(n, 0, 0, n) if n % 3 else None) for n in range(16)]
    together = sampler_step(x, v, steps, backend=backend)
    for rows in (1, 2, 5, 16):
        assert torch.equal(sampler_step(x[:rows], v[:rows], steps[:rows], backend=backend), together[:rows])
    assert torch.equal(sampler_step(x[9:10], v[9:10], steps[9:10], backend=backend), together[9:10])


def test_refuses_what_does_not_fit_with_the_numbers() -> None:
    x = torch.zeros(2, 3)
    with pytest.raises(BadInput, match=r"x is \[2, 3\] for 1 steps"):
        sampler_step(x, x, [SamplerMove(1, 0, None)])
    with pytest.raises(BadInput, match=r"velocity is torch\.float64"):
        sampler_step(x, x.double(), [SamplerMove(1, 0, None)] * 2)
    with pytest.raises(ValueError, match="step -1"):
        sampler_step(x, x, [SamplerMove(1, 0.5, NoiseKey(0, 0, 0, -1))] * 2)
