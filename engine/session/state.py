"""What a session in the engine is doing, and the table of its moves; `EngineSession` makes them. Pure data."""

from collections.abc import Mapping
from enum import StrEnum

from .. import api


class SessionState(StrEnum):
    """PAUSED asks for nothing. SUSPENDED has no slot, or is on its way out of it or back. CLOSED holds nothing."""

    PAUSED = "paused"
    WAITING = "waiting"
    DUE = "due"
    RUNNING = "running"
    SUSPENDED = api.ASLEEP
    CLOSED = "closed"


PAUSED, WAITING, DUE, RUNNING, SUSPENDED, CLOSED = SessionState

#   waiting --its time--> due --Begin--> running --boundary--> waiting      closed: from everywhere, for good
#   paused --a while--> suspended --resumed, and it fits--> waiting      running --bad chunks--> suspended, made again
MOVES: Mapping[SessionState, frozenset[SessionState]] = {
    PAUSED: frozenset({PAUSED, WAITING, SUSPENDED, CLOSED}),
    WAITING: frozenset({WAITING, DUE, PAUSED, CLOSED}),
    DUE: frozenset({WAITING, RUNNING, PAUSED, CLOSED}),
    RUNNING: frozenset({WAITING, PAUSED, SUSPENDED, CLOSED}),
    SUSPENDED: frozenset({WAITING, PAUSED, SUSPENDED, CLOSED}),
    CLOSED: frozenset(),
}
