"""Noise: the kernel's bits are the reference's, keys are apart, values are normal and independent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from worldroom.kernels.door import BadInput
from worldroom.kernels.launch import Backend
from worldroom.kernels.noise import Key, gaussian, reference
from worldroom.tests.kernel_checks import poisoned

CPU = torch.device("cpu")
PINNED = (0.42801180481910706, 1.5608205795288086, -0.09617852419614792, -0.06958244740962982)
words = st.integers(-(2**63), 2**64)
keys = st.lists(st.tuples(words, words, st.integers(0, 2**40), st.integers(0, 2**20)), min_size=1, max_size=3)


@given(keys, st.integers(1, 70))
@settings(max_examples=10, deadline=None)
def test_the_kernel_makes_the_same_bits(given_keys: list[Key], count: int) -> None:
    with poisoned():
        made = gaussian(given_keys, (count,), CPU, backend=Backend.TRITON)
    assert torch.equal(made, gaussian(given_keys, (count,), CPU))


def test_first_values_are_pinned() -> None:
    assert gaussian([(1, 0, 0, 0)], (2, 2), CPU).flatten().tolist() == pytest.approx(list(PINNED), abs=0)


def test_words_are_those_of_philox() -> None:
    """The first word makes the first value of the row, and the first of its second eighth."""
    word = int(np.random.Philox(key=7 | 3 << 64, counter=(5 << 128) + (3 << 192)).random_raw(1)[0])
    u, angle = ((word >> 33) | 1) / 2**31, (word & 0xFFFFFFFF) / 2**30
    radius = np.sqrt(-2 * np.log(u))
    turn = np.pi / 2 * (int(angle) + (angle - int(angle)) - 0.5)
    made = reference((7, 3, 5, 2), 16)
    assert made[0].item() == pytest.approx(radius * np.cos(turn), abs=2e-6)
    assert made[2].item() == pytest.approx(radius * np.sin(turn), abs=2e-6)


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    together = gaussian([(1, 0, 0, 0), (2, 0, 0, 0), (1, 0, 0, 1)], (3, 5), CPU)
    assert torch.equal(together[1], gaussian([(2, 0, 0, 0)], (3, 5), CPU)[0])


def test_every_part_of_the_key_matters() -> None:
    values = [tuple(reference(key, 8).tolist()) for key in ((1, 2, 3, 4), (2, 2, 3, 4), (1, 3, 3, 4), (1, 2, 4, 4))]
    values += [tuple(reference((1, 2, 3, 5), 8).tolist()), tuple(reference((2, 1, 3, 4), 8).tolist())]
    assert len(set(values)) == 6


def test_moments_are_those_of_a_normal() -> None:
    """A million values; each bound is five standard errors."""
    z = torch.cat([reference((9, 0, chunk, 1), 100_003) for chunk in range(10)]).double()
    for power, mean, deviation in ((1, 0, 1), (2, 1, 2**0.5), (3, 0, 15**0.5), (4, 3, 96**0.5)):
        assert abs(float((z**power).mean()) - mean) < 5 * deviation / len(z) ** 0.5
    for bound, share in ((1.0, 0.682689), (2.0, 0.954500), (3.0, 0.997300)):
        assert abs(float((z.abs() < bound).double().mean()) - share) < 0.0025


def test_neighbours_steps_chunks_and_branches_are_uncorrelated() -> None:
    n = 100_000
    z = reference((3, 0, 0, 0), n).double()
    others = [reference(key, n).double() for key in ((3, 0, 0, 1), (3, 0, 1, 0), (3, 1, 0, 0), (4, 0, 0, 0))]
    others += [z.roll(1), z.roll(n // 8), z.roll(n // 2)]
    for other in others:
        assert abs(float((z * other).mean())) < 5 / n**0.5
        assert abs(float((z.square() * other.square()).mean()) - 1) < 5 * 8**0.5 / n**0.5


def test_refuses_negative_counters() -> None:
    with pytest.raises(BadInput, match="chunk -1"):
        gaussian([(0, 0, -1, 0)], (1,), CPU)
