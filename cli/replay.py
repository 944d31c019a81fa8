"""`worldroom replay`: options; `replaying.py` does the work."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from .errors import fail
from .journal import show_sessions
from .journal_options import JournalOptions
from .option_groups import takes
from .options import OptionFlag, options_of
from .output import JsonFlag, print_object, report_table


@takes(JournalOptions)
def replay(
    session: Annotated[
        str | None, typer.Argument(help="The session; without one the journaled ones are listed.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also write what is shown as MP4.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Folder of the card's published weights.")] = None,
    option: OptionFlag = None,
    as_json: JsonFlag = False,
    *,
    journal: JournalOptions,
) -> None:
    """Make a session's world again from its journal, at its own pace, and compare every chunk's digest.

    Exit status 1 when a chunk differs; the first one is named.
    """
    from .replaying import FAULTS, play

    if session is None:
        show_sessions(journal.place(), 20, as_json)
        return
    place = journal.place()
    try:
        report = asyncio.run(play(session, place, out, checkpoint, options_of(option)))
    except FAULTS as error:
        raise fail(str(error)) from None
    if as_json:
        print_object(report)
    else:
        report_table(f"replay of {session}", report)
    if not report.same:
        raise typer.Exit(1)
