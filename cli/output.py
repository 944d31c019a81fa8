"""Printing: one JSON object with stable keys, or a rich table of the same struct."""

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


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


def _rows(prefix: str, value: object) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [row for key, inner in value.items() for row in _rows(f"{prefix}.{key}" if prefix else str(key), inner)]
    if isinstance(value, float):
        return [(prefix, f"{value:.2f}")]
    return [(prefix, str(value))]
