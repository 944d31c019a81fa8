"""A session that others go on from: they are known by their journals, and it is deleted only by force."""

import subprocess
from pathlib import Path

import msgspec
import pytest
from worldroom.cli.journal_place import JournalPlace
from worldroom.cli.journaling import checked
from worldroom.clients.bench.server import command
from worldroom.clock import SystemClock
from worldroom.sessions.journal import events
from worldroom.sessions.journal.archiver import Archiver, ArchiveSpec
from worldroom.sessions.journal.script import ParentLost, read_session
from worldroom.sessions.journal.store import StoredEntry
from worldroom.tests.journaled_sessions import Shelf, happened, onward, write_now

ORIGIN = events.Origin("one", 0, 2)


async def test_children_are_known_while_they_run_archived_and_as_an_earlier_version_archived_them(
    tmp_path: Path,
) -> None:
    shelf = Shelf(tmp_path)
    await shelf.write("one", happened(3))
    await shelf.write("other", happened(3))
    await shelf.write("archived", onward(ORIGIN))
    await shelf.write("earlier", onward(ORIGIN))
    await shelf.write("grandchild", onward(events.Origin("archived", 0, 3)))
    for name in ("earlier", "other"):
        index = shelf.archive.index(name)
        assert index is not None and index.origin is not None
        shelf.archive.put_index(msgspec.structs.replace(index, origin=None))
    await shelf.store.append([StoredEntry("running", 1, 1000.0, shelf.body(onward(ORIGIN)[0]))])
    assert await shelf.history.children("one") == ["archived", "earlier", "running"]
    assert await shelf.history.children("archived") == ["grandchild"]
    assert await shelf.history.children("other") == []


def test_the_command_line_names_them_and_deletes_by_force(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    write_now(shelf, "one", happened(3))
    for name in "abcde":
        write_now(shelf, name, onward(ORIGIN))
    words = [command(), "journal", "delete", "one", "--yes", "--data", str(tmp_path)]
    refused = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert "in a, b, c and 2 more" in refused.stderr and "--force" in refused.stderr
    assert shelf.archive.index("one") is not None
    subprocess.run([*words, "--force"], capture_output=True, timeout=60, check=True)
    assert shelf.archive.sessions() == [*"abcde"]


async def test_retention_keeps_what_kept_sessions_go_on_from_and_no_longer(tmp_path: Path) -> None:
    shelf, now = Shelf(tmp_path), SystemClock().wall()
    await shelf.write("one", happened(3))
    await shelf.write("alone", happened(3))
    await shelf.write("between", onward(ORIGIN))
    await shelf.write("young", onward(events.Origin("between", 0, 2)), at=now - 60)
    archiver = Archiver(SystemClock(), shelf.store, shelf.archive, ArchiveSpec(keep_s=3600))
    await archiver.retain()
    assert shelf.archive.sessions() == ["between", "one", "young"]
    assert (await read_session(shelf.history, "young")).parent is not None
    await Archiver(SystemClock(), shelf.store, shelf.archive, ArchiveSpec(keep_s=30)).retain()
    assert shelf.archive.sessions() == []


async def test_a_cut_of_what_a_session_goes_on_from_is_said_wherever_it_is_needed(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    await shelf.write("one", happened(3))
    await shelf.write("child", onward(ORIGIN))
    await shelf.write("orphan", onward(events.Origin("gone", 0, 2)))
    index = shelf.archive.index("one")
    assert index is not None
    shelf.archive.put_index(msgspec.structs.replace(index, cut=4))
    with pytest.raises(ParentLost, match="it goes on from session one: entries 1 to 4 of session one are not kept"):
        await read_session(shelf.history, "child")
    with pytest.raises(ParentLost, match="it goes on from session gone: how it was opened is not in this journal"):
        await read_session(shelf.history, "orphan")
    report = await checked(JournalPlace(tmp_path), None)
    assert [problem for problem in report.problems if "goes on" in problem] == [
        "child: it goes on from session one, of which the first 4 entries are not kept: it cannot be replayed",
        "orphan: it goes on from session gone, which is not kept any more: it cannot be replayed",
    ]
