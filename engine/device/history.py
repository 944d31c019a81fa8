"""The last steps of a device, for people who want to see what it did: a bounded ring, the oldest fall out. Pure."""

import math
from collections import deque
from collections.abc import Sequence

from ..api import BatchRan
from .observers import BatchRecord

LENGTH = 4096


class StepHistory:
    """Each step has a number; `since` asks for those after one, so that a reader elsewhere can follow."""

    def __init__(self, length: int = LENGTH) -> None:
        self._ring: deque[BatchRan] = deque(maxlen=length)
        self.count = 0

    def see(self, batch: BatchRecord) -> None:
        """A batch ran here."""
        step = BatchRan(
            device=batch.device,
            card=batch.key.card,
            loop=batch.key.loop,
            kind=batch.key.kind,
            sessions=tuple(ticket.session for ticket in batch.tickets),
            queued=min(ticket.queued for ticket in batch.tickets),
            started=batch.started,
            seconds=batch.seconds,
            price=batch.price if batch.price < math.inf else 0.0,
        )
        self.extend((step,))

    def extend(self, steps: Sequence[BatchRan]) -> None:
        """They ran elsewhere."""
        self._ring.extend(steps)
        self.count += len(steps)

    def all(self) -> tuple[BatchRan, ...]:
        return tuple(self._ring)

    def since(self, count: int) -> tuple[BatchRan, ...]:
        """The steps added after the first `count`, as far as they are still here."""
        missing = min(self.count - count, len(self._ring))
        return tuple(self._ring)[len(self._ring) - missing :] if missing > 0 else ()
