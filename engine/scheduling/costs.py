"""The price table: device-seconds of each step kind, measured at warm-up and refined with every batch.

Two figures per entry: `mean` (exponentially weighted) and `price` (about the 95th percentile of the last 32), which is
what deadlines and admission use. Pure: seconds come in as arguments.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...models.contract.loop import StepKind
from ...models.contract.recipe import Precision

WINDOW = 32
WEIGHT = 0.1


@dataclass(frozen=True, slots=True)
class StepKey:
    """Steps with equal keys cost the same and may share a batch. `loop`: '' for a step of no loop."""

    card: str
    loop: str
    kind: StepKind
    shape: tuple[int, ...]
    precision: Precision

    @property
    def step(self) -> tuple[str, str, StepKind]:
        """What the step is, whatever its size."""
        return self.card, self.loop, self.kind

    @property
    def step_name(self) -> str:
        return f"{self.loop}.{self.kind}" if self.loop else str(self.kind)


class Estimate:
    """One running figure in seconds."""

    __slots__ = ("_recent", "conservative", "mean")

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=WINDOW)
        self.mean = 0.0
        self.conservative = 0.0
        """The 95th percentile (nearest rank) of the recent figures; 0 before the first."""

    def observe(self, seconds: float) -> None:
        self.mean = seconds if not self._recent else self.mean + WEIGHT * (seconds - self.mean)
        self._recent.append(seconds)
        ranked = sorted(self._recent)
        self.conservative = ranked[math.ceil(len(ranked) * 0.95) - 1]

    @property
    def recent(self) -> tuple[float, ...]:
        """The last 32 figures, oldest first."""
        return tuple(self._recent)

    def remember(self, seconds: Iterable[float]) -> None:
        """Older figures, oldest first: as if they had been observed before all that were."""
        newer = self.recent
        self._recent.clear()
        for figure in (*seconds, *newer):
            self.observe(figure)


class Costs:
    """Estimates by (step, rows). An unmeasured row count is priced from the nearest smaller one, row by row."""

    def __init__(self) -> None:
        self._table: dict[StepKey, dict[int, Estimate]] = {}

    def observe(self, key: StepKey, rows: int, seconds: float) -> None:
        self._table.setdefault(key, {}).setdefault(rows, Estimate()).observe(seconds)

    def remember(self, key: StepKey, rows: int, seconds: Iterable[float]) -> None:
        """Figures from before all that were observed here, oldest first."""
        self._table.setdefault(key, {}).setdefault(rows, Estimate()).remember(seconds)

    def of_card(self, card: str) -> Iterator[tuple[StepKey, int, Estimate]]:
        """All that is known of a card: step, rows, estimate."""
        for key, by_rows in self._table.items():
            if key.card == card:
                yield from ((key, rows, estimate) for rows, estimate in by_rows.items())

    def forget(self, card: str) -> None:
        """Start a card's prices over: what was measured so far was not yet warm."""
        for key in [key for key in self._table if key.card == card]:
            del self._table[key]

    def measured(self, key: StepKey, rows: int) -> bool:
        """Whether exactly this has run."""
        return rows in self._table.get(key, ())

    def price(self, key: StepKey, rows: int) -> float:
        """Conservative device-seconds of a batch; raises LookupError when this kind was never measured."""
        measured, estimate = self._nearest(key, rows)
        return estimate.conservative * max(1.0, rows / measured)

    def price_or(self, key: StepKey, rows: int, unknown: float) -> float:
        try:
            return self.price(key, rows)
        except LookupError:
            return unknown

    def mean(self, key: StepKey, rows: int) -> float:
        measured, estimate = self._nearest(key, rows)
        return estimate.mean * max(1.0, rows / measured)

    def remaining(self, key: StepKey, following: Iterable[StepKey]) -> float:
        """Seconds for one row of a step, conservatively, and for what follows it, on average."""
        return self.price(key, 1) + sum(self.mean(later, 1) for later in following)

    def _nearest(self, key: StepKey, rows: int) -> tuple[int, Estimate]:
        by_rows = self._table.get(key) or self._sibling(key)
        if (exact := by_rows.get(rows)) is not None:
            return rows, exact
        known = max((n for n in by_rows if n <= rows), default=min(by_rows))
        return known, by_rows[known]

    def _sibling(self, key: StepKey) -> dict[int, Estimate]:
        """A shape that was never run is priced like the dearest measured shape of its kind."""
        siblings = [table for other, table in self._table.items() if other.step == key.step]
        if not siblings:
            raise LookupError(f"{key.step_name} of card '{key.card}' was never measured")
        return max(siblings, key=lambda table: table[min(table)].conservative)
