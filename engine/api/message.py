"""What everything that crosses the engine's door has in common; `door.py` says what crosses it."""

from enum import StrEnum

import msgspec


class LatencyClass(StrEnum):
    """interactive: a person steers. stream: steady video. background: runs in slack, ages, never starves."""

    INTERACTIVE = "interactive"
    STREAM = "stream"
    BACKGROUND = "background"


class Message(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """What crosses the door."""
