"""Reads what a toy picture says of itself: 4 x 20 black and white blocks at its top left.

[ chunk 24 | input sequence 24 | world time in ms 24 | checksum 8 ]   bits, most significant first, row by row
The grid is as wide as the picture, so a block's side is a twentieth of its width. Knows no model: only the picture.
"""

from typing import NamedTuple

import av
import numpy as np
import numpy.typing as npt

ROWS, COLUMNS = 4, 20


class Marker(NamedTuple):
    """Numbers modulo 2**24."""

    chunk: int
    input_seq: int
    world_ms: int


def read_luma(luma_HW: npt.NDArray[np.uint8]) -> Marker | None:
    """From the brightness plane; None where the checksum does not hold."""
    side = luma_HW.shape[1] // COLUMNS
    if side < 4 or luma_HW.shape[0] < ROWS * side:
        return None
    blocks = luma_HW[: ROWS * side, : COLUMNS * side].reshape(ROWS, side, COLUMNS, side)
    quarter = side // 4
    centres = blocks[:, quarter : side - quarter, :, quarter : side - quarter].mean(axis=(1, 3))
    data = np.packbits(centres.reshape(-1) > 128).tobytes()
    checksum = 0
    for byte in data[:9]:
        checksum ^= byte
    if checksum != data[9]:
        return None
    return Marker(*(int.from_bytes(data[at : at + 3], "big") for at in (0, 3, 6)))


def read(picture: av.VideoFrame) -> Marker | None:
    """From a decoded frame, without converting its colours."""
    plane = picture.planes[0]
    luma = np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width]
    return read_luma(luma)
