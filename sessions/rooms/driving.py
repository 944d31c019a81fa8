"""Who may act on a room's world from outside of its data channel: its driver, by the token of that seat."""

from collections.abc import Callable

from ..messages import Role, WorldState
from .rights import REPLAY, REPLAY_WHY
from .room import Room
from .seats import Seat


def driver_of(
    room: Room | None, token: str, refused: Callable[[str, str], Exception], otherwise: str
) -> tuple[Room, Seat]:
    """The room, whose world is open, and the seat of its driver. Raises `refused(code, detail)`; `otherwise`: what
    somebody hears who has a seat and does not drive.
    """
    if room is None or room.session.state is WorldState.CLOSED:
        raise refused("no_room", "no world is open in this room")
    seat = room.connected_seat(token)
    if seat is None:
        raise refused("no_place", "this token has no connected seat in the room")
    if room.wheel.role(seat.participant) is not Role.DRIVER:
        raise refused("not_driving", otherwise)
    if room.session.spec.replays:
        raise refused(REPLAY, REPLAY_WHY)
    return room, seat
