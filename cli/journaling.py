"""What `worldroom journal` does: reads journals hot and cold alike, changes those of a folder nobody serves from."""

import sys
from collections import Counter
from collections.abc import Mapping
from datetime import datetime

import msgspec
from rich.table import Table

from ..sessions.journal.archive import ArchiveError
from ..sessions.journal.entry import Entry, JournalVersion
from ..sessions.journal.history import Cut, History, NoSession, SessionSummary
from ..sessions.journal.redis_url import RedisUnreachable
from ..sessions.journal.store import StoreError
from .changing import changing
from .errors import did_you_mean
from .journal_place import FolderTaken, JournalPlace, reading
from .output import short_bytes

FAULTS = (RedisUnreachable, StoreError, ArchiveError, JournalVersion, NoSession, FolderTaken)
"""What the person who asked can put right; one line each."""


class JournaledSessions(msgspec.Struct, frozen=True):
    sessions: tuple[SessionSummary, ...]


class JournalFigures(msgspec.Struct, frozen=True):
    """`hot_bytes`: bodies of entries that are not archived; `bytes_per_hour`: of both, as they lie there."""

    session: str
    entries: int
    seconds: float
    hot_bytes: int
    archive_bytes: int
    bytes_per_hour: int
    cut: int
    types: Mapping[str, int]


class JournalCheck(msgspec.Struct, frozen=True):
    sessions: int
    entries: int
    problems: tuple[str, ...]


class ArchiveReport(msgspec.Struct, frozen=True):
    sessions: int
    entries: int


async def sessions(place: JournalPlace) -> JournaledSessions:
    async with reading(place) as history:
        return JournaledSessions(tuple(await history.summaries()))


async def entries(place: JournalPlace, session: str, types: tuple[str, ...], after: int, follow: bool) -> None:
    """Print them. A type is a whole name or the group before the dot."""
    async with reading(place) as history:
        await known(history, session)
        async for entry in history.tail(session, after) if follow else history.read(session, after):
            if isinstance(entry, Cut):
                print(f"entries {entry.first} to {entry.last} are not kept any more", file=sys.stderr)
            elif not types or any(_is_of(entry, kind) for kind in types):
                print(msgspec.json.encode(entry).decode(), flush=follow)


async def figures(place: JournalPlace, session: str) -> JournalFigures:
    async with reading(place) as history:
        await known(history, session)
        summary, counts, count = await history.summary(session), Counter[str](), 0
        hot = await history.hot_bytes(session)
        async for entry in history.read(session):
            if isinstance(entry, Entry):
                counts[_type_of(entry)] += 1
                count += 1
    seconds = summary.ended - summary.opened
    total = summary.bytes + hot
    return JournalFigures(
        session=session,
        entries=count,
        seconds=seconds,
        hot_bytes=hot,
        archive_bytes=summary.bytes,
        bytes_per_hour=round(total * 3600 / seconds) if seconds > 0 else 0,
        cut=summary.cut,
        types=dict(sorted(counts.items())),
    )


async def checked(place: JournalPlace, session: str | None) -> JournalCheck:
    problems: list[str] = []
    count, names = 0, 0
    async with reading(place) as history:
        for name in await history.names() if session is None else [await known(history, session)]:
            names += 1
            problems += [f"{name}: {wrong}" for wrong in await history.archive_problems(name)]
            cut = 0
            try:
                problems += [f"{name}: {wrong}" for wrong in await _lost_parent(history, name)]
                cut = (await history.summary(name)).cut
                async for entry in history.read(name):
                    if isinstance(entry, Entry):
                        count += 1
                    elif entry.last > cut:
                        problems.append(f"{name}: entries {entry.first} to {entry.last} are missing")
            except (*FAULTS, ValueError) as error:
                problems.append(f"{name}: {error}")
    return JournalCheck(names, count, tuple(dict.fromkeys(problems)))


async def _lost_parent(history: History, session: str) -> list[str]:
    """One line where it goes on from another session of which something is missing."""
    parent = await history.origin(session)
    found = await history.find(parent) if parent else None
    if not parent or (found is not None and not found.cut):
        return []
    what = "which is not kept any more" if found is None else f"of which the first {found.cut} entries are not kept"
    return [f"it goes on from session {parent}, {what}: it cannot be replayed"]


async def archive_now(place: JournalPlace, session: str | None) -> ArchiveReport:
    async with changing(place) as opened:
        archiver = opened.archiver
        names = await archiver.store.names()
        if session is not None and session not in names:
            raise NoSession(f"nothing of a session '{session}' is hot{did_you_mean(session, names)}")
        for name in names if session is None else [session]:
            await archiver.archive_whole(name)
        if archiver.counters.errors:
            raise ArchiveError("not everything could be archived; the journal stays where it was")
        return ArchiveReport(len(names) if session is None else 1, archiver.counters.archived)


async def known(history: History, session: str) -> str:
    names = await history.names()
    if session not in names:
        raise NoSession(f"no session '{session}' in this journal{did_you_mean(session, names)}")
    return session


def _type_of(entry: Entry) -> str:
    return str(type(entry.event).__struct_config__.tag)


def _is_of(entry: Entry, kind: str) -> bool:
    name = _type_of(entry)
    return name == kind or name.partition(".")[0] == kind.rstrip(".*")


def table(listed: JournaledSessions, most: int) -> Table:
    view = Table(title=f"{len(listed.sessions)} journaled sessions, the newest first", title_justify="left")
    for heading in ("session", "room", "card", "opened", "entries", "archived", ""):
        view.add_column(heading)
    for each in listed.sessions[:most]:
        opened = datetime.fromtimestamp(each.opened).astimezone().isoformat(" ", "seconds")
        state = "ended" if each.whole else ""
        state += f" first {each.cut} cut" if each.cut else ""
        view.add_row(each.session, each.room, each.card, opened, str(each.entries), short_bytes(each.bytes), state)
    return view
