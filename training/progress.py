"""Progress bars of a recipe's stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

S = TypeVar("S", bound=str)


class Bar:
    """One stage's progress bar, with the latest figures as a note."""

    def __init__(self, bars: Progress, stage: str) -> None:
        self._bars, self._task = bars, bars.add_task(stage, total=None, note="")

    def total(self, total: int) -> None:
        self._bars.update(self._task, total=total)

    def at(self, done: int, note: str) -> None:
        self._bars.update(self._task, completed=done, note=note)

    def add(self, more: int) -> None:
        self._bars.update(self._task, advance=more)

    def note(self, text: str) -> None:
        self._bars.update(self._task, note=text)


def each(stages: Iterable[S], console: Console) -> Iterator[tuple[S, Bar]]:
    """The stages in order, each with a bar of its own below the ones before."""
    columns = (
        TextColumn("{task.description:>12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console) as bars:
        for stage in stages:
            yield stage, Bar(bars, stage)
