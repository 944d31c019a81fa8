"""Latents of a chunk: one digest for the same values, and how far others are from them."""

import hashlib

import numpy as np
import pytest
from worldroom.models.contract.latents import BadLatents, Latents, largest_error

PLAIN = Latents.of(np.array([[-2.0, 0.0], [1.0, 2.0]], np.float32))


def test_the_digest_is_of_the_values_alone() -> None:
    values = np.array([[-2.0, 0.0], [1.0, 2.0]])
    assert PLAIN.digest == hashlib.sha256(values.astype("<f4").tobytes()).hexdigest()
    assert Latents.of(np.asfortranarray(values)).digest == PLAIN.digest
    assert Latents.of(np.array([1, 2])).digest == hashlib.sha256(np.array([1, 2], "<i8").tobytes()).hexdigest()


def test_parts_are_joined_in_order() -> None:
    other = Latents.of(np.ones((2, 3), np.float32))
    both = Latents.joined([PLAIN, other], axis=1)
    assert both.values.shape == (2, 5) and both.digest == f"{PLAIN.digest}-{other.digest}"


def test_an_error_is_a_share_of_the_recorded_range() -> None:
    moved = PLAIN.values.copy()
    moved[0, 1] += 0.2
    assert largest_error(PLAIN.packed(), PLAIN.packed()) == 0
    assert largest_error(PLAIN.packed(), Latents.of(moved).packed()) == pytest.approx(0.05)


@pytest.mark.parametrize("made", [np.zeros(4), np.array([[np.nan, 0.0], [1.0, 2.0]])])
def test_another_shape_or_no_number_is_infinitely_far(made: np.ndarray) -> None:
    assert largest_error(PLAIN.packed(), Latents.of(made).packed()) == float("inf")


def test_of_latents_that_are_all_equal_nothing_is_a_small_share() -> None:
    flat = Latents.of(np.zeros(3)).packed()
    assert largest_error(flat, flat) == 0
    assert largest_error(flat, Latents.of(np.array([0.0, 1e-6, 0.0])).packed()) == float("inf")


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", PLAIN.packed()[:-1], b"nonsense" * 40])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(BadLatents):
        largest_error(PLAIN.packed(), data)
