"""`worldroom journal` on what a server without a Redis left in files, hot and archived, alone and beside a Redis."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from worldroom.cli.main import app
from worldroom.clock import SystemClock
from worldroom.sessions.journal.redis_embedded import EmbeddedRedis
from worldroom.sessions.journal.streams import Streams
from worldroom.sessions.rooms.kept_files import KeptFiles
from worldroom.sessions.rooms.room_record import RoomRecord
from worldroom.sessions.rooms.suspend_store import SuspendedRoom, SuspendStore
from worldroom.sessions.session.prompt_versions import PromptsRecord
from worldroom.sessions.session.spec import SessionRecord
from worldroom.tests.journaled_sessions import Shelf, happened

CHUNKS = 5
ENTRIES = len(happened(CHUNKS))


def ran(folder: Path, *words: str, code: int = 0) -> str:
    """What the command printed, which ended with that code."""
    done = CliRunner().invoke(app, ["journal", *words, "--data", str(folder)])
    assert done.exit_code == code, done.output
    return done.output


def report(folder: Path, *words: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(ran(folder, *words, "--json"))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sessions that nothing was archived of."""
    shelf = Shelf(tmp_path)
    asyncio.run(shelf.append("one", happened(CHUNKS)))
    asyncio.run(shelf.append("two", happened(CHUNKS)))
    return tmp_path


def rooms(folder: Path) -> SuspendStore:
    return SuspendStore(KeptFiles(folder / "rooms", SystemClock()), keep_s=60)


def suspended(session: str) -> SuspendedRoom:
    record = SessionRecord(session, "toy", "w0", 1, 0, CHUNKS, False, ENTRIES, PromptsRecord((), {}, 0))
    return SuspendedRoom(RoomRecord("lobby", "turns", (), (), record), b"its world, with a town by night")


def test_every_command_reads_and_changes_it_and_makes_no_redis(folder: Path) -> None:
    asyncio.run(rooms(folder).put(suspended("one")))
    assert {each["session"]: each["entries"] for each in report(folder, "list")["sessions"]} == {
        "one": ENTRIES,
        "two": ENTRIES,
    }
    shown = [json.loads(line) for line in ran(folder, "show", "one", "--type", "prompt").splitlines()]
    assert [each["event"].get("text") for each in shown] == ["a town", None, "a town by night", None]
    stats = report(folder, "stats", "one")
    assert (stats["entries"], stats["types"]["chunk.committed"], stats["archive_bytes"]) == (ENTRIES, CHUNKS, 0)
    assert stats["hot_bytes"] > 0
    assert report(folder, "check") == {"sessions": 2, "entries": 2 * ENTRIES, "problems": []}
    assert report(folder, "archive", "two") == {"sessions": 1, "entries": ENTRIES}
    assert report(folder, "check", "two")["entries"] == ENTRIES, "and is read back from there"
    assert report(folder, "stats", "two")["archive_bytes"] > 0

    assert report(folder, "redact", "one", "--forget") == {"texts": 2, "embeddings": 0, "worlds": 1}
    assert "town" not in ran(folder, "show", "one")
    assert [path for path in folder.rglob("*") if path.is_file() and b"town" in path.read_bytes()] == []
    assert report(folder, "check", "one")["problems"] == []

    removed = report(folder, "delete", "one", "--yes")
    assert (removed["entries"], removed["worlds"]) == (ENTRIES, 0)
    assert [each["session"] for each in report(folder, "list")["sessions"]] == ["two"]
    assert not (folder / "redis").exists()


def test_deleting_takes_a_suspended_room_with_it_and_no_other(folder: Path) -> None:
    asyncio.run(rooms(folder).put(suspended("two")))
    assert report(folder, "delete", "one", "--yes")["worlds"] == 0
    assert asyncio.run(rooms(folder).find("lobby", ["toy"])) is not None
    assert report(folder, "delete", "two", "--yes")["worlds"] == 1
    assert asyncio.run(rooms(folder).find("lobby", ["toy"])) is None
    assert report(folder, "list")["sessions"] == []


def test_a_folder_that_was_served_both_ways_shows_both(folder: Path) -> None:
    async def with_redis() -> None:
        streams = Streams(await server.client(), 3600)
        shelf = Shelf(folder)
        await streams.append([row async for row in shelf.store.rows("two")])
        await shelf.store.drop("two")
        await streams.close()

    server = EmbeddedRedis(folder / "redis")
    server.start()
    asyncio.run(with_redis())
    server.stop()
    assert {each["session"] for each in report(folder, "list")["sessions"]} == {"one", "two"}
    assert report(folder, "check") == {"sessions": 2, "entries": 2 * ENTRIES, "problems": []}
    assert report(folder, "archive") == {"sessions": 2, "entries": 2 * ENTRIES}
    for session in ("one", "two"):
        assert report(folder, "delete", session, "--yes")["entries"] == ENTRIES
    assert report(folder, "list")["sessions"] == []


def test_a_room_in_files_waits_for_so_long_and_is_nobody_elses(tmp_path: Path) -> None:
    room, store = suspended("one"), SuspendStore(KeptFiles(tmp_path, SystemClock()), keep_s=60)
    asyncio.run(store.put(room))
    assert asyncio.run(store.find("lobby", ["toy"])) == room
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    gone = SuspendStore(KeptFiles(tmp_path, SystemClock()), keep_s=-1)
    asyncio.run(gone.put(room))
    assert asyncio.run(store.find("lobby", ["toy"])) is None
