"""One session's playout clock: when each frame is shown, and so when each chunk must begin. Pure; times are arguments.

    due = next - lead                    next              next + n/fps
     |---- Begin, steps, encode ---------->| frame 0, 1, .. n-1  |
                                           a late chunk moves `next`; nothing is ever caught up

Presentation times come from this clock, never from a frame index.
"""

TICKS = 90_000
ABSORBED = 0.1
"""Lateness up to this part of a frame interval delays one frame and hardly the clock; beyond it the clock moves."""
CREEP = 0.25
"""Part of an absorbed lateness by which the clock moves all the same: sessions that always meet drift apart."""


class Playout:
    """See the module docstring. `next` is when the next chunk's first frame should be shown."""

    def __init__(self, fps: int, per_chunk: int, start: float) -> None:
        self.interval = 1.0 / fps
        self.per_chunk = per_chunk
        self.chunk_seconds = per_chunk * self.interval
        self.late_after = ABSORBED * self.interval
        """Seconds that a chunk may take longer without moving the clock: it is late when it comes later than that."""
        self.next = start
        self.origin = start
        self.pending = False
        """The next chunk to be placed has gone ahead: the one that begins now comes after it."""
        self._last: float | None = None

    @property
    def coming(self) -> float:
        """When the first frame of the chunk that begins next should be shown."""
        return self.next + self.pending * self.chunk_seconds

    def due(self, lead: float, encode: float, ahead: bool = False, after: int = 0) -> float:
        """When to ask for the next chunk's conditions: just in time, or `ahead` as far as is allowed.

        `after`: of the chunk that comes so many later, while that in front of it has no pictures yet.

        Never before the chunk in front goes to the encoder (`encode` before it shows), or the one before that while the
        chunk in front has no pictures: so generation leads playout by at most one chunk that could be shown.
        """
        shown = self.coming + after * self.chunk_seconds
        earliest = self.next - self.chunk_seconds - encode
        return earliest if ahead else max(earliest, shown - lead)

    def begun(self, delay: float) -> float:
        """Conditions came `delay` after they were due; a delay that is not absorbed moves the clock. When the first
        frame of their chunk should be shown.
        """
        if delay > self.late_after:
            self.next += delay
        return self.coming

    def place(self, ready: float, frames: int = 0) -> tuple[float, ...]:
        """Show times of a chunk whose first frame can be shown at `ready`; moves the clock on by as many frames.

        `frames` 0 = as many as chunks usually have.
        """
        frames, self.pending = frames or self.per_chunk, False
        late = ready - self.next
        moved = late > self.late_after
        first = ready if moved else self.next
        times = tuple(first + i * self.interval for i in range(frames))
        self._last = times[-1]
        self.next = first + frames * self.interval + (0.0 if moved else max(0.0, late) * CREEP)
        return times

    def restart(self, now: float, lead: float, last_shown: float | None = None) -> None:
        """Lay the clock anew from now: after a pause, or (`last_shown`) when frames not yet shown were dropped."""
        self.pending = False
        last = self._last if last_shown is None else last_shown
        earliest = now + lead
        self.next = earliest if last is None else max(earliest, last + self.interval)

    def pts(self, at: float) -> int:
        """90 kHz ticks since the session began."""
        return round((at - self.origin) * TICKS)
