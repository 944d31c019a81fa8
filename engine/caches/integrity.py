"""Goes through all pools bit by bit and looks whether their books add up. Pure; each visit has its budget of time."""

from collections.abc import Callable, Iterator, Sequence

from .pools import FeatureCache, PoolCorrupt, SlabPool


class IntegrityCheck:
    """`rounds`: how often every pool was found sound. `problem`: what contradicts itself; then nothing is looked at."""

    def __init__(self, pools: Sequence[SlabPool | FeatureCache]) -> None:
        self._pools = pools
        self._walk = self._round()
        self.rounds = 0
        self.problem: str | None = None

    def go_on(self, now: Callable[[], float], budget: float) -> None:
        """Look for `budget` seconds, at most to the end of a round; what is left is looked at next time."""
        if self.problem is not None:
            return
        until = now() + budget
        try:
            for _ in self._walk:
                if now() >= until:
                    return
        except PoolCorrupt as corrupt:
            self.problem = str(corrupt)
            return
        self.rounds += 1
        self._walk = self._round()

    def _round(self) -> Iterator[None]:
        for pool in self._pools:
            yield from pool.inspect()
