"""The memory row: which processes it sees and what it makes of their samples."""

import os
import subprocess
import sys

from worldroom.clients.bench.memory import MIB, ProcessMemory, course, resident


def test_growth_is_between_the_first_and_the_last_tenth() -> None:
    samples = [100 * MIB, 102 * MIB, *[150 * MIB] * 16, 103 * MIB, 103 * MIB]
    tenths = (101.0, *[150.0] * 8, 103.0)
    assert course("edge", samples) == ProcessMemory("edge", tenths, low=100.0, high=150.0, growth=1.98)


def test_children_are_told_apart() -> None:
    def child(*arguments: str) -> "subprocess.Popen[bytes]":
        code = "import sys; sys.stdin.read()"
        return subprocess.Popen([sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE)

    before = resident(os.getpid())
    children = [child("valkey-server"), child("worldroom.engine.worker.main"), child("worldroom.engine.worker.main")]
    try:
        found = resident(os.getpid())
        assert found["edge"] > MIB
        assert found["redis"] > before.get("redis", 0)
        assert "worker 2" not in before and found["worker"] and found["worker 2"]
    finally:
        for process in children:
            process.communicate()
