"""Has the line gone dead? Nobody may say so: an address that was given to somebody else, a router that forgot us. Pure.

    last datagram   .2   .4 ask   .6 ask   .8 ask   1.0 doubt   ..   4 s over

A server that is busy is silent, too: in doubt it is asked another way, and only if it answers there and not here this
line is dead. Counted in looks and not in time, so that a process that slept or was busy blames nobody.
"""

from enum import Enum

LOOK_S = 0.2
ASKING = 2
DOUBTING = 5
OVER = 20


class Line(Enum):
    """What a look at the line finds."""

    WELL = "well"
    ASK = "ask"
    DOUBT = "doubt"
    OVER = "over"


class Silence:
    """See the module docstring."""

    def __init__(self) -> None:
        self._looks = 0
        self._received = -1

    @property
    def doubtful(self) -> bool:
        """Nothing at all arrives, although it was asked for."""
        return self._looks >= DOUBTING

    def look(self, received: int) -> Line:
        """One look, every `LOOK_S`. `received`: how many datagrams came so far, whatever they were."""
        self._looks = self._looks + 1 if received == self._received else 0
        self._received = received
        if self._looks >= OVER:
            return Line.OVER
        if self.doubtful:
            return Line.DOUBT
        return Line.ASK if self._looks >= ASKING else Line.WELL
