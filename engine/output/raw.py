"""Raw frames through shared memory, for sessions that ask for them: a ring in a file that worker and edge both map.

    slot  [ frame number, 8 bytes little endian | the frame ]      frame n lies in slot n % slots until n + slots

A frame lies there as the card makes it and is read as RGB of the model's size. Where that is I420 (on a GPU), colour
has half the resolution each way, and levels are a few off what was decoded.

The writer marks a slot as nobody's before it writes and as the frame's after it; a reader copies and looks at the mark
again, so a frame that was overwritten meanwhile is None, never a mixture. Imports no tensor library.
"""

import math
import mmap
import os
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...models.contract.card import FrameSpec, Pixels
from ..api import Frame, Open, RawPlace
from . import pixels

SECONDS = 1.0
"""How long a frame can be read after it was shown."""
NOBODY = (1 << 64) - 1
MARK = 8
PREFIX = "raw-"


class RawRing:
    """The writer's end of one session."""

    def __init__(self, folder: Path, frame: FrameSpec) -> None:
        self._slots, self._slot_bytes = max(2, round(SECONDS * frame.fps)), MARK + math.prod(frame.each)
        handle, self._path = tempfile.mkstemp(prefix=PREFIX, dir=folder)
        self._place = RawPlace(self._path, self._slots, frame.each, frame.pixels, frame.height, frame.width)
        try:
            os.truncate(handle, self._slots * self._slot_bytes)
            self._map = mmap.mmap(handle, self._slots * self._slot_bytes)
        finally:
            os.close(handle)

    def write(self, number: int, picture: npt.NDArray[np.uint8]) -> RawPlace:
        """Keep one frame; where it lies."""
        start = number % self._slots * self._slot_bytes
        self._map[start : start + MARK] = NOBODY.to_bytes(MARK, "little")
        self._map[start + MARK : start + self._slot_bytes] = np.ascontiguousarray(picture).data.cast("B")
        self._map[start : start + MARK] = number.to_bytes(MARK, "little")
        return self._place

    def close(self) -> None:
        """Who has the file open reads on; nobody else finds it."""
        self._map.close()
        Path(self._path).unlink(missing_ok=True)


class RawReader:
    """The edge's end of one session; a ring that was replaced by a new worker's is opened anew."""

    def __init__(self) -> None:
        self._path = ""
        self._map: mmap.mmap | None = None

    def read(self, frame: Frame) -> npt.NDArray[np.uint8] | None:
        """The frame in RGB [height, width, 3]; None when it has none or was overwritten."""
        place = frame.raw
        if place is None or not self._opened(place):
            return None
        assert self._map is not None, "it is opened"
        slot_bytes = MARK + math.prod(place.each)
        start, mark = frame.frame % place.slots * slot_bytes, frame.frame.to_bytes(MARK, "little")
        if self._map[start : start + MARK] != mark:
            return None
        copied = self._map[start + MARK : start + slot_bytes]
        if self._map[start : start + MARK] != mark:
            return None
        picture = np.frombuffer(copied, np.uint8).reshape(place.each)
        return picture if place.pixels is Pixels.RGB else pixels.rgb(picture, place.width, place.height)

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
        self._path, self._map = "", None

    def _opened(self, place: RawPlace) -> bool:
        if place.ring != self._path:
            self.close()
            try:
                with Path(place.ring).open("rb") as file:
                    self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except FileNotFoundError:
                return False
            self._path = place.ring
        return True


def clear(folder: Path) -> None:
    """Remove the rings of a worker that was killed. Who has one open reads on."""
    for left in folder.glob(f"{PREFIX}*"):
        left.unlink(missing_ok=True)


def ring_for(opening: Open, frame: FrameSpec, folder: Path) -> RawRing | None:
    """A ring where the session asked for one."""
    return RawRing(folder, frame) if opening.raw else None
