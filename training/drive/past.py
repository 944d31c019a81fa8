"""How much of its past a frame of a world may know, to measure what each way into it carries."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Known:
    """Frames of the past that may be known, None for all: through pictures and kept K and V; through recurrent tokens.

    Tokens that may know but a few frames are read off the first pictures of these and moved on from there.
    """

    kept: int | None = None
    recurrent: int | None = None


ALL = Known()


class Cut(StrEnum):
    """Which of the ways into the past are cut."""

    KEPT = "kept"
    RECURRENT = "recurrent"
    BOTH = "both"

    def to(self, frames: int) -> Known:
        return Known(None if self is Cut.RECURRENT else frames, None if self is Cut.KEPT else frames)
