"""A session's states, the table of its moves and the one function that makes a move.

Knows neither engine nor room: it decides what may follow what and tells the journal.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

from .messages import WorldState


class Cause(StrEnum):
    """Why a session moves."""

    OPENED = "opened"
    RESTORED = "brought_back"  # journals have called it so from the start
    REFUSED = "refused"
    PAUSE = "pause"
    RESUME = "resume"
    ABANDONED = "abandoned"
    RETURNED = "returned"
    RETURNED_TO_PAUSE = "returned_to_pause"
    CLOSE = "close"


OPENING, RUNNING, PAUSED, HELD, CLOSED = (
    WorldState.OPENING,
    WorldState.RUNNING,
    WorldState.PAUSED,
    WorldState.HELD,
    WorldState.CLOSED,
)

#    opening --> running <--> paused        paused: the driver stopped the world
#                   ^           ^           held: nobody is connected and the lease runs
#                   +--> held <-+           closed: from everywhere, for good
MOVES: Mapping[tuple[WorldState, Cause], WorldState] = {
    (OPENING, Cause.OPENED): RUNNING,
    (OPENING, Cause.RESTORED): HELD,
    (OPENING, Cause.REFUSED): CLOSED,
    (OPENING, Cause.CLOSE): CLOSED,
    (RUNNING, Cause.PAUSE): PAUSED,
    (RUNNING, Cause.ABANDONED): HELD,
    (RUNNING, Cause.CLOSE): CLOSED,
    (PAUSED, Cause.RESUME): RUNNING,
    (PAUSED, Cause.ABANDONED): HELD,
    (PAUSED, Cause.CLOSE): CLOSED,
    (HELD, Cause.RETURNED): RUNNING,
    (HELD, Cause.RETURNED_TO_PAUSE): PAUSED,
    (HELD, Cause.CLOSE): CLOSED,
}


class ForbiddenMove(ValueError):
    """A move that the table does not have."""

    def __init__(self, state: WorldState, cause: Cause) -> None:
        super().__init__(f"a session that is {state} does not move by {cause}")


def may(state: WorldState, cause: Cause) -> bool:
    return (state, cause) in MOVES


def move(state: WorldState, cause: Cause, record: Callable[[WorldState, WorldState, Cause], object]) -> WorldState:
    """The state after `cause`, recorded as (from, to, cause); raises `ForbiddenMove` and then records nothing."""
    target = MOVES.get((state, cause))
    if target is None:
        raise ForbiddenMove(state, cause)
    record(state, target, cause)
    return target
