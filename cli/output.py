"""Printing: one JSON object with stable keys, or a rich table of the same struct; a line of progress; short numbers."""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


BROKEN_PIPE = 141
"""Exit status of who wrote to a pipe that nobody reads any more, as shells have it: 128 + SIGPIPE."""


@contextmanager
def told_output() -> Iterator[None]:
    """What a terminal cannot show is replaced; a reader who goes away ends us in silence, a full disk in one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        _discard_output()
        if error.errno == errno.EPIPE:
            sys.exit(BROKEN_PIPE)
        print(f"worldroom: the output cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(1)


def _discard_output() -> None:
    """So that the interpreter does not try once more, and complain, when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def print_object(report: msgspec.Struct) -> None:
    """One JSON object on stdout and nothing else."""
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())


def report_table(title: str, report: msgspec.Struct) -> None:
    """A two-column table; nested structs become dotted rows."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in _rows("", msgspec.to_builtins(report)):
        table.add_row(name, value)
    Console().print(table)


def progress(unit: str) -> Progress:
    """A line on stderr with bar, count and time left, gone when it is done; nothing where nobody watches."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    return Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal)


def short_count(number: int) -> str:
    """Three digits and k, M or G (thousands): 3_565_862 is '3.57 M'."""
    return _short(number, 1000, ("", "k", "M", "G", "T"))


def short_bytes(number: int) -> str:
    """Three digits and KiB, MiB or GiB: 61_931_520 is '59.1 MiB'."""
    return _short(number, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


def _short(number: int, step: int, units: tuple[str, ...]) -> str:
    value, unit = float(number), 0
    while round(value) >= min(step, 1000) and unit + 1 < len(units):
        value, unit = value / step, unit + 1
    digits = 0 if unit == 0 or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {units[unit]}".strip()


def _rows(prefix: str, value: object) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [row for key, inner in value.items() for row in _rows(f"{prefix}.{key}" if prefix else str(key), inner)]
    if isinstance(value, float):
        return [(prefix, f"{value:.2f}")]
    return [(prefix, str(value))]
