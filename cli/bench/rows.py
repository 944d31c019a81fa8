"""Rows of one step in one call of the runtime against a call a row: what `worldroom bench model --rows` adds."""

import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
from rich.table import Table

from ...clock import SystemClock
from ...models.contract.loaded import LoadedCard
from ...models.contract.loop import StepKind
from .kernels import Times


class RowsFigure(msgspec.Struct, frozen=True):
    """Of all rows. `gain`: of the medians, how many times faster together."""

    kind: str
    rows: int
    apart: Times
    together: Times
    gain: float


def measure(loaded: LoadedCard, counts: Sequence[int], repeats: int) -> tuple[RowsFigure, ...]:
    """Every step kind at every count, both ways in turn, on one thread as in the worker. Allocates the slots anew."""
    loaded.runtime.allocate(max(counts))
    kinds = [kind for loop in loaded.card.loops for kind in loop.steps]
    with one_thread():
        return tuple(_figure(loaded, kind, count, repeats) for kind in kinds for count in counts)


def _figure(loaded: LoadedCard, kind: StepKind, count: int, repeats: int) -> RowsFigure:
    runtime = loaded.runtime
    work = runtime.warm_up_rows(kind, count)
    rows, views = [row for row, _ in work], [view for _, view in work]

    def apart() -> None:
        for row, view in work:
            runtime.execute(kind, [row], [view])

    def together() -> None:
        runtime.execute(kind, rows, views)

    spent = [_seconds((apart, together)) for _ in range(repeats + 2)][2:]
    one, other = (_times([1000 * times[way] for times in spent]) for way in (0, 1))
    return RowsFigure(kind, count, one, other, one.median_ms / other.median_ms)


def _seconds(ways: Sequence[Callable[[], None]]) -> list[float]:
    clock, spent = SystemClock(), []
    for way in ways:
        start = clock.now()
        way()
        spent.append(clock.now() - start)
    return spent


def _times(spent_ms: Sequence[float]) -> Times:
    return Times(min(spent_ms), statistics.median(spent_ms), max(spent_ms))


@contextmanager
def one_thread() -> Iterator[None]:
    """Of torch, where a card uses it: a device's own thread works in one."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 1
    if torch:
        torch.set_num_threads(1)
    yield
    if torch:
        torch.set_num_threads(before)


def table(figures: Sequence[RowsFigure]) -> Table:
    """min / median / max ms of all rows."""
    made = Table("step", "rows", "row by row, ms", "together, ms", "gain", title="rows of one step")
    for figure in figures:
        both = (f"{t.min_ms:.2f} / {t.median_ms:.2f} / {t.max_ms:.2f}" for t in (figure.apart, figure.together))
        made.add_row(figure.kind, str(figure.rows), *both, f"{figure.gain:.2f}")
    return made
