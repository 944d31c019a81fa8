"""The last steps of a device, for people who want to see what it did: a bounded ring, the oldest fall out. Pure."""

from collections import deque
from collections.abc import Iterable

from ..api import BatchRan

LENGTH = 4096


class StepHistory:
    """Each step has a number; `since` asks for those after one, so that a reader elsewhere can follow."""

    def __init__(self, length: int = LENGTH) -> None:
        self._ring: deque[BatchRan] = deque(maxlen=length)
        self.count = 0

    def add(self, step: BatchRan) -> None:
        self._ring.append(step)
        self.count += 1

    def extend(self, steps: Iterable[BatchRan]) -> None:
        for step in steps:
            self.add(step)

    def all(self) -> tuple[BatchRan, ...]:
        return tuple(self._ring)

    def since(self, count: int) -> tuple[BatchRan, ...]:
        """The steps added after the first `count`, as far as they are still here."""
        missing = min(self.count - count, len(self._ring))
        return tuple(self._ring)[len(self._ring) - missing :] if missing > 0 else ()
