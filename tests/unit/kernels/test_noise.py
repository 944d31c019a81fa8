"""Noise: words are numpy's Philox, values normal and independent, the kernel's bits those of numpy, keys apart."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from worldroom.kernels import noise
from worldroom.kernels.backend import Backend
from worldroom.kernels.philox import NoiseKey, gaussian, integers, words
from worldroom.models.drive.innovations import uniforms
from worldroom.tests.kernel_checks import poisoned

CPU = torch.device("cpu")
wide = st.integers(-(2**63), 2**64)
key = st.builds(NoiseKey, wide, wide, st.integers(0, 2**40), st.integers(0, 2**20))


def test_literal_values() -> None:
    assert words(NoiseKey(1, 0, 0, 0), 2).tolist() == [4978906544001802683, 18317224390208822039]
    assert integers(NoiseKey(1, 0, 0, 0), (3,), 1000).tolist() == [683, 39, 194]
    first = [0.42801180481910706, 1.5608205795288086, -0.09617852419614792, -0.06958244740962982]
    assert gaussian(NoiseKey(1, 0, 0, 0), (2, 2)).tolist() == [first[:2], first[2:]]


def test_words_are_those_of_numpys_philox() -> None:
    philox = np.random.Philox(key=7 | 3 << 64, counter=(5 << 128) + (3 << 192))
    assert np.array_equal(words(NoiseKey(7, 3, 5, 2), 9), philox.random_raw(9))


def test_values_are_the_textbooks() -> None:
    """Box and Muller in float64 over the halves of each word: 31 bits of radius, 32 of angle."""
    word = words(NoiseKey(7, 3, 5, 2), 4000)
    radius = np.sqrt(-2 * np.log((word >> 33 | 1) / 2.0**31))
    angle = np.pi / 2 * ((word >> 30 & 3) + (word & 0x3FFFFFFF) / 2.0**30 - 0.5)
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)  # [word, 2]
    wanted = pairs.reshape(1000, 8).T.reshape(-1)  # first values of all blocks of four words come first
    assert np.abs(gaussian(NoiseKey(7, 3, 5, 2), (8000,)) - wanted).max() < 1.5e-6


@given(st.lists(key, min_size=1, max_size=3), st.integers(1, 70))
@settings(max_examples=10, deadline=None)
def test_the_kernel_makes_the_same_bits(keys: list[NoiseKey], count: int) -> None:
    wanted = np.stack([gaussian(one, (count,)) for one in keys])
    assert torch.equal(noise.gaussian(keys, (count,), CPU), torch.from_numpy(wanted))
    with poisoned():
        made = noise.gaussian(keys, (count,), CPU, backend=Backend.TRITON)
    assert torch.equal(made, torch.from_numpy(wanted))


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    keys = [NoiseKey(1, 0, 0, 0), NoiseKey(2, 0, 0, 0), NoiseKey(1, 0, 0, 1)]
    assert torch.equal(noise.gaussian(keys, (3, 5), CPU)[1], noise.gaussian(keys[1:2], (3, 5), CPU)[0])


@given(key)
def test_every_part_of_the_key_matters(one: NoiseKey) -> None:
    others = (
        one._replace(seed=one.seed + 1),
        one._replace(branch=one.branch + 1),
        one._replace(chunk=one.chunk + 1),
        one._replace(step=one.step + 1),
    )
    assert len({tuple(words(each, 4).tolist()) for each in (one, *others)}) == 5


def test_seed_and_branch_do_not_change_places() -> None:
    assert words(NoiseKey(1, 2, 3, 4), 1).tolist() != words(NoiseKey(2, 1, 3, 4), 1).tolist()


@given(key)
def test_same_key_same_noise_in_any_order(one: NoiseKey) -> None:
    first = gaussian(one, (2, 3))
    gaussian(one._replace(chunk=one.chunk + 1), (100,))
    assert np.array_equal(first, gaussian(one, (2, 3)))


def test_moments_are_those_of_a_normal() -> None:
    """A million values; each bound is five standard errors."""
    z = _draw(9, 0, 7, 1, count=1_000_003)
    for power, mean, deviation in ((1, 0, 1), (2, 1, 2**0.5), (3, 0, 15**0.5), (4, 3, 96**0.5)):
        assert abs(float((z**power).mean()) - mean) < 5 * deviation / len(z) ** 0.5
    for bound, share in ((1.0, 0.682689), (2.0, 0.954500), (3.0, 0.997300)):
        assert abs(float((np.abs(z) < bound).mean()) - share) < 0.0025


def test_neighbours_steps_chunks_and_branches_are_uncorrelated() -> None:
    n = 100_000
    z = _draw(3, 0, 0, 0, count=n)
    others = [_draw(*key, count=n) for key in ((3, 0, 0, 1), (3, 0, 1, 0), (3, 1, 0, 0), (4, 0, 0, 0))]
    others += [np.roll(z, by) for by in (1, n // 8, n // 2)]
    for other in others:
        assert abs(float((z * other).mean())) < 5 / n**0.5
        assert abs(float((z**2 * other**2).mean()) - 1) < 5 * 8**0.5 / n**0.5


def test_shares_no_words_with_the_innovations_of_the_same_seed() -> None:
    steps = {
        int(word) >> 11 for chunk in range(20) for step in range(4) for word in words(NoiseKey(9, 0, chunk, step), 8)
    }
    frames = {int(value * 2**53) for frame in range(-1, 100) for value in uniforms(9, 0, frame)}
    assert len(steps) == 640 and len(frames) == 808 and not steps & frames


def test_refuses_negative_counters_and_wide_ranges() -> None:
    with pytest.raises(ValueError, match="got chunk -1 step 0"):
        gaussian(NoiseKey(0, 0, -1, 0), (1,))
    with pytest.raises(ValueError, match="got chunk 0 step -2"):
        noise.gaussian([NoiseKey(0, 0, 0, -2)], (1,), CPU)
    with pytest.raises(ValueError, match="no keys"):
        noise.gaussian([], (1,), CPU)
    with pytest.raises(ValueError, match="below must be"):
        integers(NoiseKey(0, 0, 0, 0), (1,), 2**32)


def test_a_toy_worlds_noise_and_the_innovations_need_no_torch() -> None:
    code = (
        "import sys, worldroom.models.toy.loop, worldroom.models.drive.innovations;"
        "print([m for m in ('torch', 'triton') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def _draw(seed: int, branch: int, chunk: int, step: int, count: int) -> NDArray[np.float64]:
    return gaussian(NoiseKey(seed, branch, chunk, step), (count,)).astype(np.float64)
