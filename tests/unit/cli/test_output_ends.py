"""Whatever the output is, a command ends as usual, in silence or with one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WORLDROOM = Path(sys.executable).parent / "worldroom"
COMMANDS = (
    ("version",),
    ("--version",),
    ("--help",),
    ("cards", "list"),
    ("cards", "list", "--json"),
    ("cards", "show", "drive"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_case_93_a_full_disk_is_one_line(command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([WORLDROOM, *command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "worldroom: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_case_93_a_reader_who_goes_away_ends_it_in_silence(command: tuple[str, ...]) -> None:
    with subprocess.Popen([WORLDROOM, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(60)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_case_93_a_terminal_without_utf_8_gets_replaced_signs(command: tuple[str, ...]) -> None:
    plain = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([WORLDROOM, *command], env=os.environ | plain, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode("ascii")


def test_case_93_names_are_whole_in_forty_columns() -> None:
    narrow = os.environ | {"COLUMNS": "40"}
    listed = subprocess.run([WORLDROOM, "cards", "list"], env=narrow, capture_output=True, text=True, timeout=60)
    words = set(listed.stdout.split())
    assert {"drive", "matrix-game-2-temple-run", "waypoint-tiny-random"} <= words
