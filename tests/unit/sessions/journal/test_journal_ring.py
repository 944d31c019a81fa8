"""The ring: what was recorded outlives a process that is killed, in order, whatever moment it dies at."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from worldroom.sessions.journal.ring import Ring
from worldroom.sessions.journal.store import StoredEntry


def entry(number: int, size: int = 20) -> StoredEntry:
    return StoredEntry(session="s", number=number, at=1.5, body=b"x" * size)


def test_what_is_not_stored_is_found_by_the_next_process(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "ring", size=4096)
    for number in (1, 2):
        assert ring.add(entry(number), [])
    ring.clear()
    ring.add(entry(3), [])
    ring.add(entry(4), [])
    assert Ring(tmp_path / "ring", size=4096).left() == [entry(3), entry(4)]


def test_a_full_half_is_left_for_the_other_with_what_still_waits(tmp_path: Path) -> None:
    ring, waiting = Ring(tmp_path / "ring", size=4096), []
    for number in range(1, 200):
        waiting.append(entry(number))
        assert ring.add(waiting[-1], waiting), number
        if len(waiting) > 5:
            del waiting[0]  # it was stored
    left = Ring(tmp_path / "ring", size=4096).left()
    assert left[-6:] == [entry(number) for number in range(194, 200)]
    assert [e.number for e in left] == list(range(left[0].number, 200)), "none is missing in between"


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "ring", size=1024)
    assert ring.holds
    assert not ring.add(entry(1, size=5000), [entry(1, size=5000)])
    assert not ring.holds
    ring.clear()
    assert ring.holds


def test_an_empty_ring_leaves_no_file(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "ring", size=1024)
    ring.add(entry(1), [])
    ring.clear()
    ring.close()
    assert not (tmp_path / "ring").exists()


_WRITER = """
import sys
from pathlib import Path
from worldroom.sessions.journal.ring import Ring
from worldroom.sessions.journal.store import StoredEntry
ring, waiting = Ring(Path(sys.argv[1]), size=1 << 16), []
print("up", flush=True)
number = 0
while True:
    number += 1
    waiting.append(StoredEntry("s", number, 0.0, b"y" * (number % 300)))
    ring.add(waiting[-1], waiting)
    if len(waiting) > 40:
        del waiting[:20]
"""


def test_killed_at_any_moment_it_holds_whole_entries_in_a_row(tmp_path: Path) -> None:
    for attempt in range(10):
        path = tmp_path / f"ring{attempt}"
        with subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            signal.sigtimedwait([], 0.003 * attempt)
            os.kill(writer.pid, signal.SIGKILL)
        left = Ring(path, size=1 << 16).left()
        assert [e.number for e in left] == list(range(left[0].number, left[0].number + len(left))) if left else True
        assert all(e.body == b"y" * (e.number % 300) for e in left)
