"""States and carries survive the trip through bytes; anything else is refused with a reason."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from worldroom.models.contract.version import UnknownContract
from worldroom.models.shared import serial
from worldroom.models.toy.loop import Ship, ToyCarry


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    latent: NDArray[np.float32]
    count: int
    older: NDArray[np.int64] | None = None


class Other(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: int


floats = hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0), elements=st.floats(width=32))
whole = hnp.arrays(np.int64, hnp.array_shapes(min_side=0))


@given(floats, st.integers(-(2**63), 2**63 - 1), st.none() | whole)
def test_round_trip_keeps_dtype_shape_and_every_bit(
    latent: NDArray[np.float32], count: int, older: NDArray[np.int64] | None
) -> None:
    back = serial.loads(serial.dumps(Pair(latent, count, older)), Pair)
    assert back.latent.dtype == np.float32 and back.latent.shape == latent.shape
    assert back.latent.tobytes() == latent.tobytes() and back.count == count
    assert (back.older is None) == (older is None)
    if older is not None and back.older is not None:
        assert np.array_equal(back.older, older)


@given(whole, st.integers(0, 16))
def test_toy_carry_round_trip(last: NDArray[np.int64], ships: int) -> None:
    carry = ToyCarry(last, Ship(1, 2, -3, 4), (Ship(0, 0, 0, 0),) * ships)
    assert serial.dumps(serial.loads(serial.dumps(carry), ToyCarry)) == serial.dumps(carry)


def test_arrays_come_back_writable_and_independent() -> None:
    data = serial.dumps(Pair(np.zeros(3, np.float32), 1))
    first, second = serial.loads(data, Pair), serial.loads(data, Pair)
    first.latent[0] = 5
    assert second.latent[0] == 0


def test_not_contiguous_arrays_keep_their_values() -> None:
    latent = np.arange(12, dtype=np.float32).reshape(3, 4).T
    assert np.array_equal(serial.loads(serial.dumps(Pair(latent, 1)), Pair).latent, latent)


GOOD = serial.dumps(Pair(np.zeros(3, np.float32), 1))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a 'Pair'"),
        (GOOD[:-1], "not a 'Pair'"),
        (GOOD + b"\x00", "not a 'Pair'"),
        (serial.dumps(Other(3)), "is a 'Other', expected a 'Pair'"),
        (msgspec.msgpack.encode((2, "Pair", {"latent": [1.0], "count": 1})), "expected an array, got list"),
        (serial.dumps(Pair(np.zeros(3, np.float64), 1)), "expected an array of float32, got float64"),  # type: ignore[arg-type]
    ],
)
def test_refuses_what_is_not_a_state(data: bytes, says: str) -> None:
    with pytest.raises(serial.SerialError, match=says):
        serial.loads(data, Pair)


def test_refuses_another_version_of_the_contract() -> None:
    with pytest.raises(UnknownContract, match="a 'Pair' has contract version 3, this program reads 2"):
        serial.loads(msgspec.msgpack.encode((3, "Pair", {})), Pair)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (("float32", (3,), b"\0" * 11), "needs 12 bytes, has 11"),
        (("float32", (-1,), b""), "is not allowed"),
        (("object", (1,), b"\0" * 8), "is not allowed"),
    ],
)
def test_refuses_damaged_arrays(body: tuple[str, tuple[int, ...], bytes], says: str) -> None:
    array = msgspec.msgpack.Ext(serial.ARRAY, msgspec.msgpack.encode(body))
    data = msgspec.msgpack.encode((2, "Pair", {"latent": array, "count": 1}))
    with pytest.raises(serial.SerialError, match=says):
        serial.loads(data, Pair)


def test_refuses_to_write_what_it_could_not_read() -> None:
    with pytest.raises(serial.SerialError, match="complex64"):
        serial.dumps(Pair(np.zeros(1, np.complex64), 1))  # type: ignore[arg-type]
