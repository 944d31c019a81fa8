"""The journal's cold part: memory stays under its ceiling, nothing is lost or doubled on the way, a cut is said."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from worldroom.clock import SystemClock
from worldroom.engine.api import Conditions, PromptShare
from worldroom.sessions.journal import events
from worldroom.sessions.journal.archive import Archive, ArchiveError, Index
from worldroom.sessions.journal.archiver import Archiver, ArchiveSpec
from worldroom.sessions.journal.disk import DiskStore
from worldroom.sessions.journal.entry import Entry
from worldroom.sessions.journal.history import Cut, History
from worldroom.sessions.journal.journal import Journal, JournalSpec
from worldroom.sessions.journal.redact import redacted
from worldroom.sessions.journal.redis_embedded import EmbeddedRedis
from worldroom.sessions.journal.store import HotStore, StoredEntry
from worldroom.sessions.journal.streams import Streams
from worldroom.sessions.messages import Transition

FAST = JournalSpec(flush_s=0.002, batch=100, retry_s=0.02, close_s=10.0)
SMALL = ArchiveSpec(part_bytes=8_000, ceiling_bytes=40_000, settle_s=0.005, retry_s=0.02)
OPENED = events.SessionOpened("lobby", "toy", "1", "w0", 2, "int", 7, 0)


@pytest.fixture(params=["redis", "disk"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[HotStore]:
    if request.param == "disk":
        yield DiskStore(tmp_path / "journal")
        return
    server = EmbeddedRedis(tmp_path / "redis")
    server.start()
    streams = Streams(await server.client(), keep_s=3600)
    yield streams
    await streams.close()
    server.stop()


def prompt(number: int) -> events.PromptAsked:
    return events.PromptAsked("ann", number, f"a town by night {number}", Transition.CUT, 0)


class WallClock(SystemClock):
    """Its wall can be set."""

    ahead = 0.0

    def wall(self) -> float:
        return super().wall() + self.ahead


async def drained(journal: Journal) -> None:
    async with asyncio.timeout(20):
        while (now := journal.counters()).spool_bytes or now.buffered or now.hot_bytes > SMALL.part_bytes:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def numbers(history: History, session: str) -> list[int]:
    entries = [entry async for entry in history.read(session)]
    assert all(isinstance(entry, Entry) for entry in entries), entries[:3]
    return [entry.number for entry in entries if isinstance(entry, Entry)]


async def test_case_88_a_long_session_stays_under_its_ceiling(store: HotStore, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    archiver = Archiver(SystemClock(), store, archive, SMALL)
    journal = Journal.open(SystemClock(), store, tmp_path / "spool", FAST, archiver=archiver)
    journal.record("s", OPENED)
    most = 0
    for number in range(1, 3000):
        journal.record("s", prompt(number))
        most = max(most, journal.counters().hot_bytes)
        if number % 20 == 0:
            await asyncio.sleep(0.002)
    history = History(store, archive)
    await drained(journal)
    assert await numbers(history, "s") == list(range(1, 3001))
    journal.record("s", events.SessionClosed(reason="lease"))
    await journal.close()
    assert most <= SMALL.ceiling_bytes + 100 * 200, "one batch beyond the ceiling at most"
    assert await store.names() == [], "an ended session is in the archive alone"
    assert await numbers(history, "s") == list(range(1, 3002))
    index = archive.index("s")
    assert index is not None and index.whole and len(index.parts) > 10
    assert index.counts == {"session.opened": 1, "prompt.asked": 2999, "session.closed": 1}
    assert archive.check(index) == []


async def test_while_the_archive_is_away_the_journal_goes_to_its_spool(store: HotStore, tmp_path: Path) -> None:
    class Away(Archive):
        away = True

        def put_index(self, index: Index) -> None:
            if self.away:
                raise ArchiveError("the archive did not take it")
            super().put_index(index)

    archive = Away(tmp_path / "archive")
    journal = Journal.open(
        SystemClock(), store, tmp_path / "spool", FAST, archiver=Archiver(SystemClock(), store, archive, SMALL)
    )
    journal.record("s", OPENED)
    for number in range(1, 1500):
        journal.record("s", prompt(number))
        if number % 20 == 0:
            await asyncio.sleep(0.002)
    counters = journal.counters()
    assert counters.hot_bytes <= SMALL.ceiling_bytes + 100 * 200 and counters.spool_bytes > 0
    archive.away = False
    await drained(journal)
    await journal.close()
    assert await numbers(History(store, archive), "s") == list(range(1, 1501))
    assert journal.counters().dropped == 0


async def test_retention_cuts_by_age_and_length_and_says_so(store: HotStore, tmp_path: Path) -> None:
    clock, archive = WallClock(), Archive(tmp_path / "archive")
    archiver = Archiver(clock, store, archive, SMALL)
    entries = [stored("s", 1, OPENED, clock), *(stored("s", n, prompt(n), clock) for n in range(2, 101))]
    await store.append(entries)
    await archiver.archive_whole("s")
    clock.ahead = 8 * 24 * 3600.0
    await store.append([stored("s", n, prompt(n), clock) for n in range(101, 121)])
    await archiver.archive_whole("s")
    await archiver.retain()
    index = archive.index("s")
    assert index is not None and (index.cut, [part.first for part in index.parts]) == (100, [101])
    first, *rest = [entry async for entry in History(store, archive).read("s")]
    assert first == Cut("s", 1, 100) and len(rest) == 20
    assert archiver.counters.cut == 100
    short = Archiver(clock, store, archive, ArchiveSpec(keep_entries=5))
    await store.append([stored("s", n, prompt(n), clock) for n in range(121, 131)])
    await short.archive_whole("s")
    await short.retain()
    assert (await History(store, archive).summary("s")).cut == 120
    clock.ahead += 8 * 24 * 3600.0
    await archiver.retain()
    assert archive.sessions() == [], "a whole session that is too old leaves nothing"


async def test_a_part_that_was_written_twice_is_read_once(store: HotStore, tmp_path: Path) -> None:
    """Killed between the archive's part and the trim of the hot store."""
    clock, archive = SystemClock(), Archive(tmp_path / "archive")
    entries = [stored("s", 1, OPENED, clock), *(stored("s", n, prompt(n), clock) for n in range(2, 31))]
    await store.append(entries)
    first = Archiver(clock, store, archive, SMALL)
    index = await first.claim("s")
    assert index is not None
    archive.add(index, entries[:20], whole=False)
    assert await numbers(History(store, archive), "s") == list(range(1, 31))
    again = Archiver(clock, store, archive, SMALL)
    await again.archive_whole("s")
    assert await numbers(History(store, archive), "s") == list(range(1, 31))
    assert await store.names() == []


async def test_a_damaged_part_is_found(store: HotStore, tmp_path: Path) -> None:
    clock, archive = SystemClock(), Archive(tmp_path / "archive")
    await store.append([stored("s", 1, OPENED, clock), stored("s", 2, prompt(2), clock)])
    await Archiver(clock, store, archive, SMALL).archive_whole("s")
    (part,) = (tmp_path / "archive" / "s").glob("*.part")
    assert part.stat().st_mode & 0o077 == 0
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    index = archive.index("s")
    assert index is not None
    assert archive.check(index) == ["part 1-2 of session s does not match its checksum"]
    with pytest.raises(ArchiveError, match="does not match its checksum"):
        await numbers(History(store, archive), "s")


async def test_a_session_left_by_a_killed_server_is_archived_when_it_is_idle(store: HotStore, tmp_path: Path) -> None:
    clock, archive = WallClock(), Archive(tmp_path / "archive")
    await store.append([stored("ours", 1, OPENED, clock), stored("theirs", 1, OPENED, clock)])
    first = Archiver(clock, store, archive, SMALL)
    first.stored([stored("ours", 1, OPENED, clock)])
    await first.settle()  # writes the index by which the session is this archive's
    clock.ahead = SMALL.idle_s + 60
    again = Archiver(clock, store, archive, SMALL)
    await again.sweep()
    assert archive.sessions() == ["ours"] and await store.names() == ["theirs"]


async def test_an_archive_may_be_anything_that_fsspec_reaches(tmp_path: Path) -> None:
    store, archive, clock = DiskStore(tmp_path / "journal"), Archive("memory://bucket/worlds"), SystemClock()
    await store.append([stored("s", 1, OPENED, clock), stored("s", 2, prompt(2), clock)])
    await Archiver(clock, store, archive, SMALL).archive_whole("s")
    assert archive.sessions() == ["s"]
    assert await numbers(History(store, archive), "s") == [1, 2]
    assert archive.delete("s") > 0 and archive.sessions() == []
    with pytest.raises(ArchiveError, match="cannot archive to nonsense://place"):
        Archive("nonsense://user:secret@place")


async def test_redaction_takes_the_words_and_keeps_the_rest(store: HotStore, tmp_path: Path) -> None:
    clock, archive = SystemClock(), Archive(tmp_path / "archive")
    same = events.PromptAsked("ann", 3, "my house at 12 Elm Street", Transition.CUT, 0)
    refused = events.Faulted("not_understood", "this world knows none of these words: Elm", fatal=False)
    conditions = Conditions(0, (), (0.0, 0.0), (PromptShare("k", 1.0),), 3, 0)
    begun = events.ChunkBegun(0, conditions)
    rows = [OPENED, same, same, events.PromptReady(number=3, key="k"), begun, refused]
    await store.append([stored("s", n, event, clock) for n, event in enumerate(rows, 1)])
    await Archiver(clock, store, archive, SMALL).archive_whole("s")
    assert redacted(archive, "s", {"k": b"an embedding"}) == 2
    assert redacted(archive, "s", {}) == 0
    found = [event async for event in History(store, archive).events("s")]
    texts = [event.text for event in found if isinstance(event, events.PromptAsked)]
    assert texts[0] == texts[1] and texts[0].startswith("redacted:")
    key = found[3].key if isinstance(found[3], events.PromptReady) else ""
    assert key.startswith("redacted:") and found[3] == events.PromptReady(3, key, b"an embedding")
    assert found[4] == events.ChunkBegun(0, msgspec.structs.replace(conditions, prompts=(PromptShare(key, 1.0),)))
    assert found[5] == events.Faulted("not_understood", "", fatal=False)


def test_every_word_that_an_event_may_hold_is_known_to_redaction() -> None:
    """A new field of text is put either here or into `redact.py`."""
    taken_out = {"PromptAsked.text", "PromptReady.key", "Faulted.detail"}
    nobodys_words = {
        *("SessionOpened.room", "SessionOpened.card", "SessionOpened.version", "SessionOpened.weights"),
        *("SessionOpened.precision", "SessionOpened.mode", "SessionOpened.machine", "SessionClosed.reason"),
        "SessionOpened.drivers",
        *("WeightsLoaded.weights", "WeightsLoaded.precision", "WeightsLoaded.mode", "WeightsLoaded.machine"),
        *("Faulted.code", "RecordingMarked.name", "InputReceived.held", "WorldTurned.held", "ChunkCommitted.digest"),
        *("PreferenceChosen.context", "PreferenceChosen.weights", "DriverChanged.before", "DriverChanged.after"),
    }
    found = {
        f"{kind.__name__}.{field.name}"
        for kind in get_args(events.JournalEvent)
        for field in msgspec.structs.fields(kind)
        if field.name != "participant" and field.type in (str, str | None, tuple[str, ...])
    }
    assert found == taken_out | nobodys_words


def stored(session: str, number: int, event: events.JournalEvent, clock: SystemClock) -> StoredEntry:
    from worldroom.sessions.journal.entry import Stamp, encode

    return StoredEntry(session, number, clock.wall(), encode(event, Stamp()))


def test_case_115_journal_files_are_their_owners_alone(tmp_path: Path) -> None:
    async def scene() -> Sequence[Path]:
        store = DiskStore(tmp_path / "data" / "journal")
        journal = Journal.open(SystemClock(), store, tmp_path / "data" / "spool", FAST)
        journal.record("s", OPENED)
        await journal.close()
        return [*(tmp_path / "data").rglob("*")]

    for path in asyncio.run(scene()):
        assert path.stat().st_mode & 0o077 == 0, path
