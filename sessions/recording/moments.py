"""The last half minute of a world, kept as it was sent: encoded frames in memory, a film of them when somebody asks.

    |--------- asked for: SECONDS ---------|now
  key ...... key ...... key ...... key ...|        a film begins with the last key frame before its time

Nothing is encoded twice. A stream without a key frame for `KEY_EVERY_S` is asked for one, so that a film begins near.
"""

import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

from ...engine.api import Frame
from ...film import Film

SECONDS = 30.0
KEY_EVERY_S = 15.0
BYTES_MAX = 12 << 20
CLOCK = 90_000


class Moments:
    """Of one world. `frame` is an observer of its audience; `film` blocks for milliseconds, off the event loop."""

    def __init__(self, fps: int, request_key: Callable[[], None]) -> None:
        self._fps, self._request_key = fps, request_key
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._key_tick: int | None = None

    def __len__(self) -> int:
        return len(self._frames)

    def frame(self, frame: Frame, hold_us: int) -> None:
        self._frames.append(frame)
        self._bytes += len(frame.data)
        if frame.key or self._key_tick is None:
            self._key_tick = frame.pts
        elif _since(frame.pts, self._key_tick) > KEY_EVERY_S * CLOCK:
            self._key_tick = frame.pts
            self._request_key()
        self._forget(frame.pts)

    def taken(self) -> tuple[Frame, ...]:
        """The frames that a film of now is made of; for `film`, in any thread."""
        frames = tuple(self._frames)
        if not frames:
            return ()
        end = frames[-1].pts
        keys = [n for n, frame in enumerate(frames) if frame.key]
        before = [n for n in keys if _since(end, frames[n].pts) >= SECONDS * CLOCK]
        first = before[-1] if before else keys[0] if keys else len(frames)
        return frames[first:]

    def film(self, frames: tuple[Frame, ...]) -> bytes:
        """An MP4 of them; raises `OSError` when no temporary file can be written."""
        with tempfile.TemporaryDirectory(prefix="worldroom-clip-") as folder:
            path = Path(folder) / "clip.mp4"
            film = Film(path, self._fps)
            for frame in frames:
                film.frame(frame.pts & 0xFFFFFFFF, frame.data, frame.key)
            film.close()
            return path.read_bytes()

    def _forget(self, now: int) -> None:
        """Frames that no film will hold any more, oldest first."""
        keep = (SECONDS + KEY_EVERY_S + 1.0) * CLOCK
        while self._frames and (self._bytes > BYTES_MAX or _since(now, self._frames[0].pts) > keep):
            self._bytes -= len(self._frames.popleft().data)


def _since(later: int, earlier: int) -> int:
    """Ticks between two times of a 32-bit clock."""
    return (later - earlier) & 0xFFFFFFFF
