"""What the invariant form costs: `python -m worldroom.models.wan.sharing_cost`. Prints milliseconds and ratios.

One denoise step of 1, 4 and 8 rows at a full window, on one thread: a pass for each row, one plain pass, and one pass
whose rows keep the bits they have alone. The three take turns in every round, so they share the machine's moods. A
ratio is the median over rounds, then that of the shortest times.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import torch

from ...clock import SystemClock
from ..contract.cache import CacheView
from ..contract.loop import StepKind
from . import drawn
from .card import SPECS
from .rows import Sharing, WanRow
from .runtime import WanRuntime
from .spec import WanShape, WanSpec

ROWS = (1, 4, 8)
ROUNDS = 18
MIDDLE = WanShape(dim=384, heads=6, layers=6, ffn=1536, text_dim=64, text_length=64, freq_dim=64, rows=12, columns=16)


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of every round."""

    card: str
    sharing: Sharing
    rows: int
    took_ms: tuple[float, ...]

    def __str__(self) -> str:
        low, middle, high = min(self.took_ms), median(self.took_ms), max(self.took_ms)
        return f"{self.card:9} {self.rows} rows {self.sharing:9} {low:7.2f} {middle:7.2f} {high:7.2f} ms"


def measure(name: str, spec: WanSpec, rows: int) -> tuple[Cost, ...]:
    """All three, interleaved."""
    clock = SystemClock()
    runtimes = {sharing: _runtime(spec, sharing, rows) for sharing in Sharing}
    took: dict[Sharing, list[float]] = {sharing: [] for sharing in Sharing}
    given: list[tuple[WanRow, CacheView | None]] = runtimes[Sharing.PLAIN].warm_up_rows(StepKind.DENOISE, rows)
    asked, views = [row for row, _ in given], [view for _, view in given]
    ways = [*Sharing]
    for turn in range(-1, ROUNDS):
        for sharing in ways[turn % 3 :] + ways[: turn % 3]:
            started = clock.now()
            runtimes[sharing].execute(StepKind.DENOISE, asked, views)
            if turn >= 0:
                took[sharing].append((clock.now() - started) * 1000)
    return tuple(Cost(name, sharing, rows, tuple(every)) for sharing, every in took.items())


def _runtime(spec: WanSpec, sharing: Sharing, slots: int) -> WanRuntime:
    runtime = WanRuntime(spec, drawn.networks(spec, torch.float32), torch.float32, sharing)
    runtime.allocate(slots)
    return runtime


def _ratio(costs: Sequence[Cost], other: Sharing) -> str:
    """The invariant form's time as a share of the other's."""
    took = {cost.sharing: cost.took_ms for cost in costs}
    ours, theirs = took[Sharing.INVARIANT], took[other]
    middle = median(a / b for a, b in zip(ours, theirs, strict=True))
    return f"{middle:.2f} ({min(ours) / min(theirs):.2f})"


def main() -> None:
    torch.set_num_threads(1)
    tiny = SPECS["wan-tiny-random"]
    for name, spec in (("tiny", tiny), ("dim 384", replace(tiny, shape=MIDDLE))):
        for rows in ROWS:
            costs = measure(name, spec, rows)
            print(*costs, sep="\n")
            alone, plain = (_ratio(costs, other) for other in (Sharing.ALONE, Sharing.PLAIN))
            print(f"{name:9} {rows} rows: invariant = {alone} x row by row, {plain} x plain", flush=True)


if __name__ == "__main__":
    main()
