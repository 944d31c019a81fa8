"""Checkpoints of a session's worlds that lie in a data folder: found by name, counted and removed. Blocking."""

from pathlib import Path

from ..engine.caches.store import ASIDE
from ..engine.caches.tier import Tier

FOLDER = "worlds"


def forget_checkpoints(data: Path, session: str, last: int) -> int:
    """Remove what lies there of a session whose last entry has the number `last`; how many bytes that were.

    Its worlds are called like it, with a number behind for another future or a world that was made again.
    """
    tier, size = Tier(data / FOLDER, None), 0
    for name in (session, *(f"{session}.{number}" for number in range(last + 2))):
        for world in (name, ASIDE + name):
            if tier.holds(world):
                before = tier.used
                tier.forget(world)
                size += before - tier.used
    return size
