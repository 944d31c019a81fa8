"""Rooms without a network, for benches of the engine: drivers who each hold a key, viewers who note their frames."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from ..engine.api import Frame, Refused
from ..sessions.messages import Input, KeyEdge, Problem, ServerMessage, Welcome
from ..sessions.rooms import Rooms

KEYS = ("ArrowUp", "ArrowLeft", "ArrowRight")
PHASE_S = 0.037  # between two arrivals: never in step with a frame rate


@dataclass(slots=True)
class Viewer:
    """A sink: the times of its frames on the loop's clock, and complaints."""

    frames: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    session: str = ""

    def send(self, message: ServerMessage) -> None:
        match message:
            case Welcome():
                self.session = message.session
            case Problem():
                self.problems.append(message.code)
            case _:
                pass

    def frame(self, frame: Frame, hold_us: int) -> None:
        self.frames.append(asyncio.get_running_loop().time())


async def seats(rooms: Rooms, most: int) -> AsyncIterator[Viewer | Refused]:
    """One driver a room, until `most` are in or the next one is refused; the refusal comes last."""
    for number in range(most):
        viewer = Viewer()
        member = await rooms.join(f"room{number}", viewer, None, None)
        if isinstance(member, Refused):
            yield member
            return
        key = KEYS[number % len(KEYS)]
        member.receive(Input(seq=1, held=(key,), edges=(KeyEdge(seq=1, key=key, down=True),)))
        yield viewer
        await asyncio.sleep(PHASE_S)
