"""`worldroom export`: sessions as data sets."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from .errors import did_you_mean, fail
from .journal_options import JournalOptions
from .option_groups import takes
from .output import JsonFlag, print_object, progress, report_table


@takes(JournalOptions)
def export(
    session: Annotated[list[str] | None, typer.Argument(help="Sessions; without any all that fit the options.")] = None,
    format: Annotated[str, typer.Option(help="lerobot, parquet, webdataset or pairs.")] = "parquet",
    out: Annotated[Path, typer.Option(help="Folder; one that holds an export of this format is gone on with.")] = Path(
        "export"
    ),
    since: Annotated[str | None, typer.Option(help="Only sessions opened after this, e.g. 2026-12-01T08:00.")] = None,
    card: Annotated[str | None, typer.Option(help="Only sessions of this card.")] = None,
    consented: Annotated[
        bool, typer.Option("--consented", help="Only sessions of people who said that they may be used.")
    ] = False,
    licence: Annotated[str, typer.Option(help="Said in the data card.")] = "not stated",
    push: Annotated[str | None, typer.Option(help="Hub repository, e.g. me/worlds; needs HF_TOKEN.")] = None,
    as_json: JsonFlag = False,
    *,
    journal: JournalOptions,
) -> None:
    """Write sessions as a data set: actions, prompts, rewards, preferences, films, and where everything is from.

    Stopped and started again it goes on; memory does not grow with the number of sessions.
    """
    from ..clock import SystemClock
    from ..models import catalog
    from ..sessions.export.episodes import episodes
    from ..sessions.export.exporter import ExportFormat, ExportReport, ExportSpec
    from ..sessions.export.exporter import export as write
    from ..sessions.export.manifest import ManifestMismatch
    from ..sessions.recording.recordings import Recordings
    from .journal_place import reading
    from .journaling import FAULTS

    try:
        kind = ExportFormat(format)
    except ValueError:
        formats = [str(each) for each in ExportFormat]
        raise fail(f"no format '{format}': there are {', '.join(formats)}{did_you_mean(format, formats)}") from None
    place, after = journal.place(), _when(since)
    recordings = Recordings(place.data / "recordings", SystemClock())

    async def run() -> ExportReport:
        async with reading(place) as history:
            found = await history.summaries()
            names = [each.session for each in found if card is None or each.card == card]
            for name in session or ():
                if name not in names:
                    raise ManifestMismatch(f"no session '{name}' in this journal{did_you_mean(name, names)}")
            chosen = list(session) if session else names[::-1]
            cards = {each.card for each in found if each.session in chosen}
            controls = tuple(c.name for c in catalog.card(next(iter(cards))).controls) if len(cards) == 1 else ()
            with progress("sessions") as bar:
                task = bar.add_task(f"exporting as {kind}", total=len(chosen))
                spec = ExportSpec(kind, out, controls, licence, consented)
                return await write(episodes(history, recordings, chosen, after), spec, lambda _: bar.advance(task))

    try:
        report = asyncio.run(run())
    except (*FAULTS, ManifestMismatch, catalog.UnknownCard) as error:
        raise fail(str(error)) from None
    except ImportError as error:
        raise fail(f"exporting needs the package {error.name}: pip install 'worldroom[export]'") from None
    if push is not None:
        push_to_hub(out, push)
    print_object(report) if as_json else report_table(f"export to {out}", report)


def _when(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise fail(f"--since '{text}' is no time like 2026-12-01 or 2026-12-01T08:00+01:00") from None
    return (moment if moment.tzinfo else moment.astimezone()).astimezone(UTC).timestamp()


def push_to_hub(folder: Path, repository: str) -> None:
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    if get_token() is None:
        raise fail("--push needs a token of the hub: set HF_TOKEN")
    try:
        api = HfApi()
        api.create_repo(repository, repo_type="dataset", exist_ok=True, private=True)
        api.upload_folder(repo_id=repository, folder_path=str(folder), repo_type="dataset")
    except (HfHubHTTPError, LocalTokenNotFoundError, OSError) as error:
        raise fail(f"the hub did not take it: {type(error).__name__}") from None
