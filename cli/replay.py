"""`worldroom replay`: options; `replaying.py` does the work."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .errors import fail
from .folders import data_dir
from .options import OptionFlag, options_of
from .output import JsonFlag, print_object, report_table


def replay(
    session: Annotated[
        str | None, typer.Argument(help="The session; without one the journaled ones are listed.")
    ] = None,
    redis: Annotated[
        str | None, typer.Option(envvar="WORLDROOM_REDIS_URL", help="The Redis that holds the journal.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the embedded journal, as of `serve`.")] = None,
    out: Annotated[Path | None, typer.Option(help="Also write what is shown as MP4.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Folder of the card's published weights.")] = None,
    option: OptionFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a session's world again from its journal, at its own pace, and compare every chunk's digest.

    Exit status 1 when a chunk differs; the first one is named.
    """
    from .replaying import FAULTS, play, sessions, table

    place = data or data_dir()
    try:
        if session is None:
            listed = asyncio.run(sessions(redis, place))
        else:
            report = asyncio.run(play(session, redis, place, out, checkpoint, options_of(option)))
    except FAULTS as error:
        raise fail(str(error)) from None
    if session is None:
        print_object(listed) if as_json else Console().print(table(listed))
        return
    if as_json:
        print_object(report)
    else:
        report_table(f"replay of {session}", report)
    if not report.same:
        raise typer.Exit(1)
