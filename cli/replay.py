"""`worldroom replay`: options; `replaying.py` does the work."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .errors import fail
from .journal import show_sessions
from .journal_options import JournalOptions
from .journal_place import JournalPlace
from .option_groups import takes
from .options import OptionFlag, options_of
from .output import JsonFlag, print_object, report_table

if TYPE_CHECKING:
    from .replaying import Weights
    from .serve_spec import ReplayWish

HERE = "here"


@takes(JournalOptions)
def replay(
    session: Annotated[
        str | None, typer.Argument(help="The session; without one the journaled ones are listed.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also write what is shown as MP4.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Folder of the card's published weights.")] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Folder of other weights than it was recorded with: a counterfactual.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Fail too when a chunk could not be compared.")] = False,
    first: Annotated[int, typer.Option("--from", min=0, help="Chunk from which on it is shown and compared.")] = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="Denoise steps: a counterfactual.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Words in place of all it had: a counterfactual.")] = None,
    adapters: Annotated[Path | None, typer.Option(help="Folder of the adapters it was made with.")] = None,
    room: Annotated[
        str | None,
        typer.Option(
            metavar="URL|here", help="Watch it in a room: of the server at this address, or of one started here."
        ),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="WORLDROOM_TOKEN", help="An API key's token, for a server that asks.")
    ] = None,
    option: OptionFlag = None,
    as_json: JsonFlag = False,
    *,
    journal: JournalOptions,
) -> None:
    """Make a session's world again from its journal, at its own pace, and compare every chunk.

    Exit status 1 when a chunk differs, of a card that is not exact by more than its tolerance; the first one is named.
    A counterfactual is compared with nothing, and says so. With --room people watch it, pause it and seek in it.
    """
    from ..sessions.journal.replay import ReplayAsk
    from .replaying import FAULTS, Weights, play
    from .serve_spec import ReplayWish

    if session is None:
        show_sessions(journal.place(), 20, as_json)
        return
    place, ask = journal.place(), ReplayAsk(first, prompt, steps, weights is not None)
    if verify and ask != ReplayAsk():
        raise fail("--verify compares all that was recorded: without --from, --weights, --steps and --prompt")
    folders = Weights(weights or checkpoint, adapters)
    if room is not None:
        if verify or out or weights or steps or as_json:
            raise fail("--room shows a session as it was, or under another --prompt: without the other options")
        _in_room(room, token, place, folders, options_of(option), ReplayWish(session, first, prompt))
        return
    try:
        report = asyncio.run(play(session, place, out, folders, options_of(option), ask))
    except FAULTS as error:
        raise fail(str(error)) from None
    if as_json:
        print_object(report)
    else:
        report_table(f"replay of {session}", report)
    if report.same is False or (verify and (report.unseen or not report.vouched)):
        raise typer.Exit(1)


def _in_room(
    server: str,
    token: str | None,
    place: JournalPlace,
    weights: "Weights",
    given: Mapping[str, str],
    wish: "ReplayWish",
) -> None:
    from .replay_room import NotShown, ask, served
    from .replaying import FAULTS
    from .serve import run_until_stopped

    try:
        if server != HERE:
            typer.echo(asyncio.run(ask(server, token, wish)))
            return
        spec = asyncio.run(served(place, weights, given, wish))
    except (*FAULTS, NotShown) as error:
        raise fail(str(error)) from None
    run_until_stopped(spec)
