"""What the log says of rooms that wait in line, and of all rooms at the end: room names and figures, nobody's words."""

import logging
from collections.abc import Sequence

from ...engine.api import Refused

log = logging.getLogger(__name__)

IN_LINE_MAX = 256
NAMED_MOST = 8


class WaitLog:
    """Rooms that stand in line, each told to the log when its place changes and not with every attempt."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def stands(self, room: str, refused: Refused) -> None:
        before = self._places.pop(room, 0)
        if not refused.queue_place:
            return
        self._places[room] = refused.queue_place
        while len(self._places) > IN_LINE_MAX:  # who gave up between two attempts is never heard of again
            del self._places[next(iter(self._places))]
        if refused.queue_place != before:
            log.info("room %s waits in line, place %d: %s", room, refused.queue_place, refused.reason)

    def gone(self, room: str) -> bool:
        """It is in, or has given up; whether it stood in line."""
        return self._places.pop(room, None) is not None


def stopped(suspended: Sequence[str], ended: int) -> str:
    """What became of a server's rooms when it stopped: names of those that were suspended, how many ended."""
    said = f"stopped: {_counted(len(suspended), 'room is', 'rooms are')} suspended"
    if suspended:
        more = ", .." if len(suspended) > NAMED_MOST else ""
        said += f" until the next start ({', '.join(suspended[:NAMED_MOST])}{more})"
    return f"{said}, {_counted(ended, 'room ends', 'rooms end')}"


def _counted(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"
