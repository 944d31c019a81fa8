"""An edge in this process without a network, for benches of the engine: rooms and journal over a door, drivers who each
hold a key, viewers who note their frames.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ...clock import Clock
from ...engine.api import Frame, Refused, Rendered
from ...engine.worker.client import WorkerClient
from ...engine.worker.pool import WorkerPool
from ...sessions.audience import FrameInput
from ...sessions.journal.journal import Journal
from ...sessions.messages import Input, KeyEdge, Problem, ServerMessage, Welcome
from ...sessions.rooms.opener import RoomsSpec
from ...sessions.rooms.rooms import Rooms

KEYS = ("ArrowUp", "ArrowLeft", "ArrowRight")
PHASE_S = 0.037  # between two arrivals: never in step with a frame rate


@dataclass(slots=True)
class SilentViewer:
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

    def frame(self, frame: Frame, given: FrameInput) -> None:
        self.frames.append(asyncio.get_running_loop().time())

    def rendered(self, rendered: Rendered, given: FrameInput) -> None:
        """It asks for none."""


@dataclass(frozen=True, slots=True)
class BenchStage:
    rooms: Rooms
    journal: Journal


@asynccontextmanager
async def staged(door: WorkerClient | WorkerPool, clock: Clock, spec: RoomsSpec) -> AsyncIterator[BenchStage]:
    """Start the door's workers and open rooms on them; in the end all are closed. Raises `WorkerFailed`."""
    await door.start()
    journal = Journal(clock)
    rooms = Rooms(door, journal, clock, spec)
    try:
        yield BenchStage(rooms, journal)
    finally:
        await rooms.close()
        await door.close()
        await journal.close()


async def seats(rooms: Rooms, most: int) -> AsyncIterator[SilentViewer | Refused]:
    """One driver a room, until `most` are in or the next one is refused; the refusal comes last."""
    for number in range(most):
        viewer = SilentViewer()
        member = await rooms.join(f"room{number}", viewer, None, None)
        if isinstance(member, Refused):
            yield member
            return
        key = KEYS[number % len(KEYS)]
        member.receive(Input(seq=1, held=(key,), edges=(KeyEdge(seq=1, key=key, down=True),)))
        yield viewer
        await asyncio.sleep(PHASE_S)
