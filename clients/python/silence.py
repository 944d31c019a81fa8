"""Has the line gone dead? Nobody may say so: an address that was given to somebody else, a router that forgot us. Pure.

    last datagram   .2   .4 ask   .6 ask   .8 ask   1.0 ask   1.2 s over

Counted in looks and not in time, so that a process that slept or was busy blames nobody.
"""

from enum import Enum

LOOK_S = 0.2
ASKING = 2
OVER = 6


class Line(Enum):
    """What a look at the line finds."""

    WELL = "well"
    ASK = "ask"
    OVER = "over"


class Silence:
    """See the module docstring."""

    def __init__(self) -> None:
        self._looks = 0
        self._received = -1

    def look(self, received: int) -> Line:
        """One look, every `LOOK_S`. `received`: how many datagrams came so far, whatever they were."""
        self._looks = self._looks + 1 if received == self._received else 0
        self._received = received
        if self._looks >= OVER:
            return Line.OVER
        return Line.ASK if self._looks >= ASKING else Line.WELL
