"""Checkpoints of a session's worlds that lie in a data folder. Blocking."""

from pathlib import Path

from ..engine.caches.tier import Tier

FOLDER = "worlds"


def forget_checkpoints(data: Path, session: str) -> int:
    """Remove what lies there of a session's worlds, of all its futures; how many bytes that were."""
    return Tier(data / FOLDER, None).forget_all(session)
