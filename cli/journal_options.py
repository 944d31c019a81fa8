"""Options of the journal, as `serve` and whoever reads journals take them."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .folders import data_dir
from .journal_place import JournalKind, JournalPlace

if TYPE_CHECKING:
    from ..sessions.journal.archiver import ArchiveSpec
    from ..sessions.journal.latents import LatentsSpec

Redis = Annotated[
    str | None,
    typer.Option(
        envvar="WORLDROOM_REDIS_URL", help="Journal in this Redis, e.g. redis://host:6379/0. Default: embedded."
    ),
]
Data = Annotated[Path | None, typer.Option(help="Folder of the journal, its spool and its archive.")]
Archive = Annotated[
    str | None,
    typer.Option(help="Where older parts of journals are: a folder or s3://bucket/prefix."),
]


@dataclass(frozen=True, slots=True)
class JournalOptions:
    """Where journals lie."""

    redis: Redis = None
    data: Data = None
    archive: Archive = None

    def place(self, kind: JournalKind | None = None) -> JournalPlace:
        return JournalPlace(self.data or data_dir(), self.redis, self.archive, kind)


class RecordWhat(StrEnum):
    ASKED = "asked"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class KeepOptions:
    """What a server does with them."""

    journal: Annotated[JournalKind, typer.Option(help="redis, or disk: files alone, without any Redis.")] = (
        JournalKind.REDIS
    )
    keep_days: Annotated[float, typer.Option(min=0.01, help="Days after which journals are given up.")] = 7.0
    keep_entries: Annotated[
        int | None, typer.Option(min=1000, help="Entries of a session that are kept at most; default: all.")
    ] = None

    record: Annotated[RecordWhat, typer.Option(help="all: film every room; asked: those whose driver asks for it.")] = (
        RecordWhat.ASKED
    )

    keep_latents: Annotated[
        int | None,
        typer.Option(
            min=0, help="Keep latents this many chunks apart; default: 16 of cards that are not exact, else 0."
        ),
    ] = None
    latents_mb: Annotated[int, typer.Option(min=1, help="Megabytes of latents a session may keep at most.")] = 1024

    def latents(self) -> "LatentsSpec":
        from ..sessions.journal.latents import LatentsSpec

        return LatentsSpec(self.keep_latents, self.latents_mb << 20)

    def retention(self) -> "ArchiveSpec":
        from ..sessions.journal.archiver import ArchiveSpec

        return ArchiveSpec(keep_s=self.keep_days * 86400, keep_entries=self.keep_entries)
