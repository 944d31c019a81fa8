"""How much of everything is measured, and how much memory and processor time it takes."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Amounts:
    """As the command line said it."""

    rooms: int
    seconds: float
    blocks: int
    hours: float
    chunks: int
    sessions: int
    listed: int


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, all its threads; 0 where that is not told."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib() -> float:
    """Resident memory of this process; 0 where that is not told."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
