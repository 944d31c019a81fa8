"""How long things took, as Prometheus counts it: a histogram with fixed bounds. Reads no clock."""

from bisect import bisect_left

BOUNDS_S = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5)


class Delays:
    """Seconds, counted by the first bound that is not below them."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total += seconds

    def cumulated(self) -> list[tuple[str, float]]:
        """(bound, how many were at most that), the last one '+Inf'."""
        found, so_far = [], 0
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), self._counts, strict=True):
            so_far += count
            found.append((bound, float(so_far)))
        return found
