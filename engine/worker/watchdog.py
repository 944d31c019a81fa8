"""Whether a silent worker hangs or only waits for its turn on a crowded machine. The verdict is pure.

A worker speaks ten times a second. Silence alone proves nothing where processes queue for cores: one that is runnable
but gets no CPU time is starved and is given longer; one that is stopped, blocked, or burns CPU without a word hangs.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SILENCE = 0.6
"""Seconds without a word, or over a batch's patience, after which a worker is looked at."""
STARVED = 15.0
"""Seconds of silence after which even a starved worker is given up."""
BURNT = 0.5
"""CPU seconds a worker may use in silence."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ProcStat:
    """A process as the kernel sees it: `waits` = some thread runs, wants to run or waits for a disk."""

    waits: bool
    cpu: float


def hangs(silence: float, before: ProcStat, now: ProcStat) -> bool:
    """`before` was taken early in the silence, `now` at its end."""
    if silence < SILENCE:
        return False
    starved = now.waits and now.cpu - before.cpu < BURNT
    return not starved or silence >= STARVED


def said(silence: float, busy: float, patience: float) -> str:
    """What a worker that hangs is said to do, for the log. `busy`: seconds of its batch, with their `patience`."""
    if busy > patience:
        return f"a step runs for {busy:.1f} s, {patience:.1f} s are its patience (`worldroom serve --patience`)"
    return f"silent for {silence:.1f} s"


def proc_stat_of(pid: int) -> ProcStat:
    """Where the kernel does not tell (no /proc), a process never counts as starved."""
    states, cpu = set(), 0.0
    for fields in _threads(pid):
        states.add(fields[0])
        cpu += (int(fields[11]) + int(fields[12])) / _TICKS
    return ProcStat(bool(states & {"R", "D"}), cpu)


def _threads(pid: int) -> Iterator[list[str]]:
    """Fields of /proc/PID/task/*/stat after the name, the state first."""
    for task in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            yield task.read_text().rpartition(")")[2].split()
        except OSError:
            continue
