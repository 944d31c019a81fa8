"""The table of moves, read as a table."""

import pytest
from worldroom.sessions.messages import WorldState
from worldroom.sessions.states import MOVES, Cause, ForbiddenMove, may, move

Recorded = list[tuple[WorldState, WorldState, Cause]]


def test_a_world_pauses_is_abandoned_and_comes_back_paused() -> None:
    recorded: Recorded = []
    state = WorldState.OPENING
    for cause in (Cause.OPENED, Cause.PAUSE, Cause.ABANDONED, Cause.RETURNED_TO_PAUSE, Cause.RESUME, Cause.CLOSE):
        state = move(state, cause, lambda *row: recorded.append(row))
    assert [after for _, after, _ in recorded] == ["running", "paused", "held", "paused", "running", "closed"]


def test_a_move_outside_the_table_is_refused_and_not_recorded() -> None:
    recorded: Recorded = []
    with pytest.raises(ForbiddenMove, match="a session that is held does not move by pause"):
        move(WorldState.HELD, Cause.PAUSE, lambda *row: recorded.append(row))
    assert recorded == []


def test_closed_is_for_good_and_every_other_state_can_close() -> None:
    assert [cause for cause in Cause if may(WorldState.CLOSED, cause)] == []
    assert all(may(state, Cause.CLOSE) for state in WorldState if state is not WorldState.CLOSED)


def test_every_state_is_reached() -> None:
    assert set(MOVES.values()) | {WorldState.OPENING} == set(WorldState)
