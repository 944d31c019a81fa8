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
    weights: Annotated[
        Path | None, typer.Option(help="Folder of other weights than it was recorded with: a counterfactual.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Fail too when a chunk could not be compared.")] = False,
    first: Annotated[int, typer.Option("--from", min=0, help="Chunk from which on it is shown and compared.")] = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="Denoise steps: a counterfactual.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Words in place of all it had: a counterfactual.")] = None,
    adapters: Annotated[Path | None, typer.Option(help="Folder of the adapters it was made with.")] = None,
    option: OptionFlag = None,
    as_json: JsonFlag = False,
    *,
    journal: JournalOptions,
) -> None:
    """Make a session's world again from its journal, at its own pace, and compare every chunk.

    Exit status 1 when a chunk differs, of a card that is not exact by more than its tolerance; the first one is named.
    A counterfactual is compared with nothing, and says so.
    """
    from ..sessions.journal.replay import ReplayAsk
    from .replaying import FAULTS, Weights, play

    if session is None:
        show_sessions(journal.place(), 20, as_json)
        return
    place, ask = journal.place(), ReplayAsk(first, prompt, steps, weights is not None)
    if verify and ask != ReplayAsk():
        raise fail("--verify compares all that was recorded: without --from, --weights, --steps and --prompt")
    try:
        folders = Weights(weights or checkpoint, adapters)
        report = asyncio.run(play(session, place, out, folders, options_of(option), ask))
    except FAULTS as error:
        raise fail(str(error)) from None
    if as_json:
        print_object(report)
    else:
        report_table(f"replay of {session}", report)
    if report.same is False or (verify and (report.unseen or not report.vouched)):
        raise typer.Exit(1)
