"""Writes sessions in one format into a folder, one after the other: memory does not grow with their number.

Stopped and started again it goes on; repeated it does what is new. `README.md` is the data card.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from . import lerobot, manifest, shards, tables
from .card import data_card
from .episodes import Episode
from .manifest import ExportedSession, ExportManifest, ManifestMismatch
from .slot import Slot


class ExportFormat(StrEnum):
    LEROBOT = "lerobot"
    PARQUET = "parquet"
    WEBDATASET = "webdataset"
    PAIRS = "pairs"


class ExportReport(msgspec.Struct, frozen=True):
    """`sessions`: in the data set now, `new` of them written this time. `digest`: of everything in it."""

    format: str
    folder: str
    sessions: int
    new: int
    skipped: int
    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class ExportSpec:
    """`controls`: names of the card's controls, for formats that name them. `licence`: said in the data card.
    `consented`: only sessions in which everybody who acted said that they may be used."""

    format: ExportFormat
    folder: Path
    controls: Sequence[str] = ()
    licence: str = "not stated"
    consented: bool = False


WRITERS = {
    ExportFormat.LEROBOT: lerobot.write_episodes,
    ExportFormat.PARQUET: tables.write_chunks,
    ExportFormat.WEBDATASET: shards.write_shard,
    ExportFormat.PAIRS: tables.write_pairs,
}
EMPTY = {
    ExportFormat.LEROBOT: "not filmed",
    ExportFormat.PARQUET: "no chunk",
    ExportFormat.WEBDATASET: "not filmed",
    ExportFormat.PAIRS: "no choice was made in it",
}


async def export(
    found: AsyncIterator[Episode], spec: ExportSpec, done: Callable[[str], None] = lambda session: None
) -> ExportReport:
    """Raises `ManifestMismatch` and what the disk raises."""
    folder, kind = spec.folder, spec.format
    record = manifest.opened(folder, kind)
    tasks = lerobot.tasks_of(lerobot.written_episodes(folder, record)) if kind is ExportFormat.LEROBOT else {}
    new = 0
    if spec.consented:
        _all_consented(record, folder)
    async for episode in found:
        if spec.consented and not episode.consented:
            record.skipped[episode.session] = "without consent"
        elif not record.has(episode.session, episode.digest, folder):
            _one_card(record, episode, kind)
            files, rows = WRITERS[kind](episode, folder, Slot(record.places, record.rows, tasks))
            if rows:
                record.sessions[episode.session] = _entry(episode, record.places, files, rows)
                record.skipped.pop(episode.session, None)
                new += 1
            else:
                record.skipped[episode.session] = EMPTY[kind]
            record.write(folder)
        done(episode.session)
    if kind is ExportFormat.LEROBOT:
        lerobot.finish(folder, record, spec.controls)
    record.write(folder)
    (folder / "README.md").write_text(data_card(record, spec.licence))
    return ExportReport(kind, str(folder), len(record.sessions), new, len(record.skipped), record.rows, record.digest)


def _all_consented(record: ExportManifest, folder: Path) -> None:
    """What was written before stays, so it must not be what is to be left out."""
    if others := [each.session for each in record.sessions.values() if not each.consented]:
        raise ManifestMismatch(f"{folder} holds {len(others)} sessions without consent: export to a fresh folder")


def _one_card(record: ExportManifest, episode: Episode, kind: ExportFormat) -> None:
    """LeRobot's table has one width of actions, and frames are numbered through: what is written stays."""
    if kind is not ExportFormat.LEROBOT:
        return
    if episode.session in record.sessions:
        raise ManifestMismatch(
            f"session {episode.session} is not what it was when it was exported: export to a fresh folder"
        )
    cards = {each.card for each in record.sessions.values()}
    if cards and episode.opened.card not in cards:
        raise ManifestMismatch(
            f"session {episode.session} is of card {episode.opened.card}, this data set of {', '.join(cards)}: "
            "choose one with --card"
        )


def _entry(episode: Episode, place: int, files: dict[str, str], rows: int) -> ExportedSession:
    opened = episode.opened
    return ExportedSession(
        session=episode.session,
        digest=episode.digest,
        card=opened.card,
        weights=opened.weights,
        place=place,
        rows=rows,
        pairs=len(episode.pairs),
        seconds=round(episode.chunks[-1].at - episode.at, 3) if episode.chunks else 0.0,
        complete=episode.complete,
        redacted=episode.redacted,
        files=files,
        consented=episode.consented,
    )
