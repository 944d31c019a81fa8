"""The latents of one finished chunk, on the host: what its digest is of, and what a journal may keep of it."""

import hashlib
import io
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray


class BadLatents(ValueError):
    """Bytes that are no packed latents."""


class Latents(msgspec.Struct, frozen=True):
    """`values`: little-endian float32, or int64 of a card that computes in integers. Make one with `of`."""

    digest: str
    values: NDArray[Any]

    @classmethod
    def of(cls, values: NDArray[Any]) -> "Latents":
        whole = np.issubdtype(values.dtype, np.integer)
        packed = np.ascontiguousarray(values, "<i8" if whole else "<f4")
        return cls(hashlib.sha256(packed.data).hexdigest(), packed)

    @classmethod
    def joined(cls, parts: Sequence["Latents"], axis: int) -> "Latents":
        """Of a chunk that was decoded part by part."""
        values = np.concatenate([part.values for part in parts], axis)
        return cls("-".join(part.digest for part in parts), values)

    def packed(self) -> bytes:
        """As a .npy file."""
        file = io.BytesIO()
        np.lib.format.write_array(file, self.values, allow_pickle=False)
        return file.getvalue()


def largest_error(recorded: bytes, made: bytes) -> float:
    """The largest difference of two packed latents, as a share of the range of the recorded ones; infinite where their
    shapes differ or one is not finite. Raises `BadLatents`.
    """
    wanted, found = _unpacked(recorded), _unpacked(made)
    if wanted.shape != found.shape or not (np.isfinite(wanted).all() and np.isfinite(found).all()):
        return float("inf")
    error = float(np.abs(wanted - found).max(initial=0.0))
    reach = float(np.ptp(wanted)) if wanted.size else 0.0
    return error / reach if reach else (float("inf") if error else 0.0)


def _unpacked(data: bytes) -> NDArray[np.float64]:
    try:
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
        return np.asarray(array, np.float64)
    except (ValueError, EOFError, OSError) as error:
        raise BadLatents(f"these are no latents: {error}") from None
