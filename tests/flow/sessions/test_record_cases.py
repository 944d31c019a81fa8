"""Records that went wrong once: a second server on a folder, a clock set back, a wild pointer, another machine."""

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from worldroom.cli.journal_place import FolderLock
from worldroom.cli.journaling import JournaledSessions, table
from worldroom.clients.bench.server import command
from worldroom.clock import SystemClock
from worldroom.engine import api
from worldroom.sessions.journal import events, replay
from worldroom.sessions.journal.entry import NOWHERE, decode, encode
from worldroom.sessions.journal.journal import Journal
from worldroom.sessions.messages import Input
from worldroom.tests.fake_door import FakeDoor
from worldroom.tests.flow.sessions.test_room_flows import House, beats, play
from worldroom.tests.journaled_sessions import Shelf, happened


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_case_80_a_second_server_on_a_folder_changes_nothing_in_it(tmp_path: Path) -> None:
    """It used to delete the first one's sleeping worlds before it found the folder taken."""
    for name in ("worlds/0123456789abcdef0123456789abcdef/newest.world", "journal/s.log", "redis/appendonly.aof"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"a world that sleeps")
    lock = FolderLock(tmp_path)
    before = contents(tmp_path)
    words = [command(), "serve", "--card", "toy", "--port", "0", "--data", str(tmp_path)]
    second = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    lock.close()
    assert second.returncode == 2 and "another Worldroom server uses" in second.stderr, second.stderr
    assert "Traceback" not in second.stderr
    assert contents(tmp_path) == before


class SetBackClock(SystemClock):
    at = 2000.0

    def wall(self) -> float:
        return self.at


async def test_case_101_a_clock_that_is_set_back_leaves_the_newest_session_first(tmp_path: Path) -> None:
    clock, shelf = SetBackClock(), Shelf(tmp_path)
    journal = Journal.open(clock, shelf.store, tmp_path / "spool")
    for name, wall in (("first", 2000.0), ("second", 1000.0)):
        clock.at = wall
        for event in happened(1)[:-1]:
            journal.record(name, event)
        await asyncio.sleep(0.001)
    clock.at = 3000.0
    journal.record("third", happened(1)[0])
    await journal.close()
    rows = [row async for row in shelf.store.rows("second")]
    assert min(row.at for row in rows) > 2000.0, "a journal's time does not run back"
    listed = await shelf.history.summaries()
    assert [each.session for each in listed] == ["third", "second", "first"]
    with Console(width=200, record=True) as console:
        console.print(table(JournaledSessions(tuple(listed)), 20))
    assert re.search(r"1970-01-01 \d\d:\d\d:\d\d[+-]\d\d:\d\d", console.export_text()), "with its zone"


@pytest.mark.parametrize("wild", [1e308, -1e308])
def test_case_107_a_session_with_a_wild_pointer_replays(wild: float) -> None:
    """JSON has no infinity: the difference of two such sums was journaled as null."""

    async def scene(house: House) -> None:
        driver, _ = await house.join()
        for seq, pointer in enumerate(((wild, -wild), (-wild, wild), (0.0, 0.0)), 1):
            driver.receive(Input(seq=seq, held=(), pointer=pointer))
            await beats(2)
        session = next(iter(house.door.worlds))
        recorded = house.journal.buffered(session)
        read = [decode(session, n, 0.0, encode(event, NOWHERE)).event for n, event in enumerate(recorded, 1)]
        assert read == recorded
        assert max(abs(p) for e in read if isinstance(e, events.InputReceived) for p in e.pointer) == 1e9
        script = await replay.read(each(read))
        result = await replay.replay(FakeDoor(opening_s=0.0), script, "again")
        assert result.chunks >= 6 and result.mismatches == ()

    play(scene)


async def each(happened: list[events.JournalEvent]) -> AsyncIterator[events.JournalEvent]:
    for event in happened:
        yield event


class OtherMachine(FakeDoor):
    """Computes with other instructions than those that sessions were recorded with."""

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        answer = await super().open(command, events)
        assert isinstance(answer, api.Opened)
        return msgspec.structs.replace(answer, machine="avx2")


OTHER = "recorded with avx512, this machine has avx2: last bits of chunks may differ"


async def replayed(script: replay.Script) -> list[tuple[str, int]]:
    """What a replay says, each with the number of chunks that were begun by then."""
    door, said = OtherMachine(opening_s=0.0), list[tuple[str, int]]()
    await replay.replay(door, script, "again", say=lambda line: said.append((line, len(door.of(api.Begin)))))
    return said


def test_case_113_replay_on_another_machine_says_so_before_it_starts() -> None:
    async def scene(house: House) -> None:
        await house.join()
        await beats(3)
        recorded = house.journal.buffered(next(iter(house.door.worlds)))
        opened = next(e for e in recorded if isinstance(e, events.SessionOpened))
        for machine, same in (("avx512", False), ("avx2", True), ("", True)):
            there = [msgspec.structs.replace(e, machine=machine) if e is opened else e for e in recorded]
            said = await replayed(await replay.read(each(there)))
            assert said == ([] if same else [(OTHER, 0)])

    play(scene)
