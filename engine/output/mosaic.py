"""Worlds side by side in one picture of the usual size: each in its place, as it was shown last.

    two:  | 0 | 1 |  in the middle        three, four:  | 0 | 1 |      each half as wide and half as high
                                                        | 2 | 3 |

The world in place 0 leads: its frames are the stream's, with all places in them. Knows no session.
"""

import numpy as np
import numpy.typing as npt

from ...models.contract.card import FrameSpec
from .pixels import enlarged

BLACK_Y, GREY_UV = 16, 128
COLUMNS = 2
PLACES_MAX = 4

Planes = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


class Mosaic:
    """`shown`: number of the next frame, presentation time of the last one, and when that was shown."""

    def __init__(self, frame: FrameSpec, places: int) -> None:
        if not 2 <= places <= PLACES_MAX:
            raise ValueError(f"2 to {PLACES_MAX} worlds stand side by side, not {places}")
        self._frame, self._places = frame, places
        self._pictures: dict[int, npt.NDArray[np.uint8]] = {}
        self._tiles: dict[int, tuple[npt.NDArray[np.uint8], Planes]] = {}
        """Each picture that was made small last, and what it came to."""
        self.shown = (0, -1, 0.0)

    def put(self, place: int, picture: npt.NDArray[np.uint8]) -> None:
        """What that world shows from now on."""
        self._pictures[place] = picture

    def picture(self) -> npt.NDArray[np.uint8]:
        """All of them as I420 of the shown size. Blocking: for a thread of the encoders."""
        width, height = self._frame.shown_width, self._frame.shown_height
        whole = np.empty((height * 3 // 2, width), np.uint8)
        whole[:height], whole[height:] = BLACK_Y, GREY_UV
        wide, high = width // 4 * 2, height // 4 * 2
        top = (height - high) // 4 * 2 if self._places <= COLUMNS else 0
        for place, picture in [*self._pictures.items()]:
            row, column = divmod(place, COLUMNS)
            made = self._tiles.get(place)
            if made is None or made[0] is not picture:
                small = enlarged(picture, self._frame, wide, high).to_ndarray(format="yuv420p")
                made = self._tiles[place] = picture, _planes(small.astype(np.uint8, copy=False))
            _paste(_planes(whole), made[1], top + row * high, column * wide)
        return whole


def _planes(picture: npt.NDArray[np.uint8]) -> Planes:
    """Views of Y, U and V."""
    height, width = picture.shape[0] * 2 // 3, picture.shape[1]
    flat, luma, chroma = picture.reshape(-1), height * width, height * width // 4
    small = height // 2, width // 2
    u, v = flat[luma : luma + chroma].reshape(small), flat[luma + chroma :].reshape(small)
    return flat[:luma].reshape(height, width), u, v


def _paste(into: Planes, tile: Planes, top: int, left: int) -> None:
    for plane, part, shrunk in zip(into, tile, (1, 2, 2), strict=True):
        height, width = part.shape
        y, x = top // shrunk, left // shrunk
        plane[y : y + height, x : x + width] = part
