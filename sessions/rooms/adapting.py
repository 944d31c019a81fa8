"""Adapters from outside of a room's data channel: who may, and an answer once a chunk has them."""

import asyncio

from ..messages import Adapt, AdapterChoice, Applied, Problem, ServerMessage
from ..views import AdaptersView
from .driving import driver_of
from .room import Room

WITHIN_S = 30.0


class AdaptFailed(ValueError):
    """The world keeps the stack it has; `code` for programs, the message for a person."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


async def adapt(room: Room | None, token: str, stack: tuple[AdapterChoice, ...]) -> AdaptersView:
    """Swap the stack of a room's world; raises `AdaptFailed`. `token`: of the driver's seat."""
    room, seat = driver_of(room, token, AdaptFailed, "only the driver changes the world")
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def reply(message: ServerMessage) -> None:
        if answer.done():
            return
        if isinstance(message, Problem):
            answer.set_exception(AdaptFailed(message.code, message.detail))
        elif isinstance(message, Applied):
            answer.set_result(message.chunk)

    session = room.session
    session.adapters.adapt(Adapt(id=0, stack=stack), session.card, seat.participant, reply)
    try:
        async with asyncio.timeout(WITHIN_S):
            chunk = await answer
    except TimeoutError:
        raise AdaptFailed("busy", f"no chunk had it within {WITHIN_S:.0f} s: the world may stand still") from None
    return AdaptersView(chunk, session.adapters.now.stack)
