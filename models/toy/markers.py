"""Machine-readable blocks at the top left of a toy frame, so that any client can measure latency from pixels.

4 rows x 20 columns of 8 x 8 pixels, white = 1, black = 0, row by row, most significant bit first:
[ chunk 24 | input sequence 24 | world time in ms 24 | checksum 8 ]     checksum = XOR of the nine bytes before it
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ROWS, COLUMNS, BLOCK = 4, 20, 8
BAND = ROWS * BLOCK


class Marker(NamedTuple):
    """What a frame says of itself; each number is kept modulo 2**24."""

    chunk: int
    input_seq: int
    time_ms: int


def draw(frame_HWC: NDArray[np.uint8], marker: Marker) -> None:
    """Write the blocks over the frame's top left, in place."""
    body = b"".join((number % 2**24).to_bytes(3, "big") for number in marker)
    bits = np.unpackbits(np.frombuffer(body + bytes((_checksum(body),)), np.uint8)).reshape(ROWS, COLUMNS)
    band = np.kron(bits * np.uint8(255), np.ones((BLOCK, BLOCK), np.uint8))
    frame_HWC[:BAND, : COLUMNS * BLOCK] = band[:, :, None]


def read(frame_HWC: NDArray[np.uint8], scale: int = 1) -> Marker | None:
    """The marker of a frame shown at `scale`, None when its checksum does not hold."""
    side = BLOCK * scale
    if frame_HWC.shape[0] < ROWS * side or frame_HWC.shape[1] < COLUMNS * side:
        return None
    grid = frame_HWC[: ROWS * side, : COLUMNS * side].reshape(ROWS, side, COLUMNS, side, -1)
    inner = slice(side // 4, side - side // 4)
    bits = grid[:, inner, :, inner].mean(axis=(1, 3, 4)) > 127.5
    data = np.packbits(bits.reshape(-1)).tobytes()
    if data[9] != _checksum(data[:9]):
        return None
    return Marker(*(int.from_bytes(data[at : at + 3], "big") for at in (0, 3, 6)))


def _checksum(body: bytes) -> int:
    return int(np.bitwise_xor.reduce(np.frombuffer(body, np.uint8)))
