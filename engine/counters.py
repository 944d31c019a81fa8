"""What is counted of a session's work: each thing once, by who does it. A card's totals are sums of these."""

from dataclasses import astuple, dataclass


@dataclass(slots=True)
class Counters:
    """`late`: chunks later than the playout clock absorbs. `dropped`: raw frames for which the encoder had no time.
    `superseded`: frames of a world that was redirected before they were shown. `degraded`: sessions that were let in
    with fewer steps than the default.
    """

    frames: int = 0
    chunks: int = 0
    late: int = 0
    cancelled: int = 0
    faults: int = 0
    dropped: int = 0
    superseded: int = 0
    degraded: int = 0

    def __add__(self, other: "Counters") -> "Counters":
        return Counters(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))
