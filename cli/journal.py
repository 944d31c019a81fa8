"""`worldroom journal`: options; `journaling.py` does the work."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer
from rich.console import Console

from .errors import fail
from .journal_options import JournalOptions
from .journal_place import JournalPlace
from .option_groups import takes
from .options import OptionFlag, options_of
from .output import JsonFlag, print_object, report_table

app = typer.Typer(help="What sessions wrote down: list, show, follow, check, archive, redact and delete journals.")
T = TypeVar("T")

Name = Annotated[str, typer.Argument(help="The session; `worldroom journal list` shows them.")]
Types = Annotated[list[str] | None, typer.Option("--type", help="Only these, e.g. prompt or chunk.committed.")]
After = Annotated[int, typer.Option(min=0, help="Only entries beyond this number.")]


@app.command("list")
@takes(JournalOptions)
def listed(
    most: Annotated[int, typer.Option(min=1, help="Sessions to show.")] = 20,
    as_json: JsonFlag = False,
    *,
    journal: JournalOptions,
) -> None:
    """Every journaled session, the newest first."""
    show_sessions(journal.place(), most, as_json)


@app.command()
@takes(JournalOptions)
def show(
    session: Name,
    types: Types = None,
    after: After = 0,
    *,
    journal: JournalOptions,
) -> None:
    """A session's entries, one JSON object a line, archived and recent ones alike."""
    from .journaling import entries

    _run(entries(journal.place(), session, tuple(types or ()), after, follow=False))


@app.command()
@takes(JournalOptions)
def tail(
    session: Name,
    types: Types = None,
    after: After = 0,
    *,
    journal: JournalOptions,
) -> None:
    """As `show`, and then what happens, until the session ends or Ctrl-C."""
    from .journaling import entries

    _run(entries(journal.place(), session, tuple(types or ()), after, follow=True))


@app.command()
@takes(JournalOptions)
def stats(session: Name, as_json: JsonFlag = False, *, journal: JournalOptions) -> None:
    """Entries by type, bytes, and bytes per hour of a session."""
    from .journaling import figures

    _print(f"journal of {session}", _run(figures(journal.place(), session)), as_json)


@app.command()
@takes(JournalOptions)
def check(
    session: Annotated[str | None, typer.Argument(help="The session; without one all are checked.")] = None,
    as_json: JsonFlag = False,
    *,
    journal: JournalOptions,
) -> None:
    """Whether every entry is there once and every archived part matches its checksum; exit status 1 if not."""
    from .journaling import checked

    report = _run(checked(journal.place(), session))
    _print("journal check", report, as_json)
    if report.problems:
        raise typer.Exit(1)


@app.command("archive")
@takes(JournalOptions)
def archived(
    session: Annotated[str | None, typer.Argument(help="The session; without one all of them.")] = None,
    as_json: JsonFlag = False,
    *,
    journal: JournalOptions,
) -> None:
    """Move what is still hot of sessions to the archive. For a folder that no server runs on."""
    from .journaling import archive_now

    _print("archived", _run(archive_now(journal.place(), session)), as_json)


@app.command()
@takes(JournalOptions)
def redact(
    session: Name,
    forget: Annotated[
        bool, typer.Option("--forget", help="Keep no embeddings either: its pictures cannot be made again.")
    ] = False,
    checkpoint: Annotated[Path | None, typer.Option(help="Folder of the card's published weights.")] = None,
    option: OptionFlag = None,
    as_json: JsonFlag = False,
    *,
    journal: JournalOptions,
) -> None:
    """Replace what people wrote by salted hashes, for good; replay goes on from the texts' embeddings.

    Ends the session: a world of it that waits suspended is removed. For a folder that no server runs on.
    """
    from .erasing import redact_now

    report = _run(redact_now(journal.place(), session, checkpoint, options_of(option), keep=not forget))
    _print(f"redacted {session}", report, as_json)


@app.command()
@takes(JournalOptions)
def delete(
    session: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where other sessions go on from it: they cannot be replayed then.")
    ] = False,
    as_json: JsonFlag = False,
    *,
    journal: JournalOptions,
) -> None:
    """Remove everything of a session: journal, archive, suspended world, recordings; says what it removed."""
    from .erasing import delete_now

    if not yes:
        typer.confirm(f"Delete everything of session {session} for good?", abort=True)
    _print(f"deleted {session}", _run(delete_now(journal.place(), session, force)), as_json)


def show_sessions(place: JournalPlace, most: int, as_json: bool) -> None:
    from .journaling import sessions, table

    found = _run(sessions(place))
    print_object(found) if as_json else Console().print(table(found, most))


def _print(title: str, report: msgspec.Struct, as_json: bool) -> None:
    print_object(report) if as_json else report_table(title, report)


def _run(work: Coroutine[Any, Any, T]) -> T:
    from .erasing import ERASING_FAULTS

    try:
        return asyncio.run(work)
    except ERASING_FAULTS as error:
        raise fail(str(error)) from None
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
