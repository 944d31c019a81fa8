"""Opens one room: around its suspended session if there is one, else around a new one. Knows no other rooms."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ...clock import Clock
from ...engine.api import EngineClient, LatencyClass, Refused, SuspendableEngine
from ..audience import Audience
from ..counters import RoomsCounters
from ..journal.journal import Journal
from ..messages import AdapterChoice
from ..session.session import Session
from ..session.spec import SessionSpec
from .room import Room, RoomRecord, RoomSpec
from .suspend import RoomSuspension


@dataclass(frozen=True, slots=True)
class RoomsSpec:
    """What a server's rooms are like. `card`: of a room of which nobody says which. `prompt` None = the card's first
    suggestion; `steps` None = the recipe's. `adapters`: the stack that worlds begin with.
    """

    card: str
    prompt: str | None = None
    steps: int | None = None
    latency_class: LatencyClass = LatencyClass.INTERACTIVE
    lease_s: float = 60.0
    rooms: int = 64
    seats: int = 32
    adapters: tuple[AdapterChoice, ...] = ()


@dataclass(slots=True)
class RoomEntry:
    """A room by its name, from the first join on. `joining`: joins that wait for its session.

    `asked`: the session that the engine has been asked for, '' while a suspended one is restored. `forgotten`: its name
    is free again. `card`: its world's, as who opened it asked; None = whichever.
    """

    name: str
    card: str | None
    audience: Audience
    asked: str
    task: "asyncio.Task[Room | Refused]"
    joining: int = 0
    room: Room | None = None
    forgotten: bool = False


class RoomOpener:
    """See the module docstring. Parameters as of `Rooms`."""

    def __init__(
        self,
        door: EngineClient,
        journal: Journal,
        clock: Clock,
        spec: RoomsSpec,
        counters: RoomsCounters,
        entropy: Callable[[int], bytes],
        suspension: RoomSuspension | None,
        futures: SuspendableEngine | None,
    ) -> None:
        self._door, self._journal, self._clock, self._spec = door, journal, clock, spec
        self._counters, self._entropy, self._suspension, self._futures = counters, entropy, suspension, futures

    async def open(self, entry: RoomEntry, seed: int) -> Room | Refused:
        return await self._restored(entry) or await self._opened(entry, seed)

    async def _restored(self, entry: RoomEntry) -> Room | Refused | None:
        """None when there is no suspended room of that name, or it can never be restored."""
        suspension = self._suspension
        if suspension is None:
            return None
        served = [info.name for info in self._door.cards()] or [self._spec.card]
        suspended = await suspension.find(entry.name, served if entry.card is None else [entry.card])
        if suspended is None or entry.forgotten:
            return None
        record, asked = suspended.record, entry.asked
        session = self._session(entry, record.session.card, record.session.name, record.session.seed)
        entry.asked = ""
        restored = await suspension.restore(suspended, session)
        entry.asked = asked
        if isinstance(restored, Refused):
            return restored
        return self._room(entry, session, record) if restored else None

    async def _opened(self, entry: RoomEntry, seed: int) -> Room | Refused:
        session = self._session(entry, entry.card or self._spec.card, entry.asked, seed)
        return await session.open() or self._room(entry, session)

    def _session(self, entry: RoomEntry, card: str, name: str, seed: int) -> Session:
        spec = self._spec
        session_spec = SessionSpec(
            name, entry.name, card, seed, spec.prompt, spec.steps, spec.latency_class, spec.adapters
        )
        parts = self._door, self._journal, self._clock, self._counters, entry.audience
        return Session(session_spec, *parts, self._futures)

    def _room(self, entry: RoomEntry, session: Session, record: RoomRecord | None = None) -> Room:
        spec = RoomSpec(entry.name, self._spec.lease_s, self._spec.seats)
        return Room(spec, session, entry.audience, self._clock, self._counters, self._entropy, record)
