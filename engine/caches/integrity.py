"""Incremental integrity check of all pools, in time slices. Pure; each slice has its budget of time."""

from collections.abc import Callable, Iterator, Sequence

from .feature_cache import FeatureCache
from .slab_pool import PoolCorrupt, SlabPool


class IntegrityCheck:
    """`rounds`: how often every pool was found sound. `problem`: what contradicts itself; then it stops."""

    def __init__(self, pools: Sequence[SlabPool | FeatureCache]) -> None:
        self._pools = pools
        self._walk = self._round()
        self.rounds = 0
        self.problem: str | None = None

    def go_on(self, now: Callable[[], float], budget: float) -> None:
        """Check for `budget` seconds, at most to the end of a round; the next slice goes on from there."""
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
