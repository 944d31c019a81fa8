"""Opens one room: around its suspended session if there is one, else as it was planned of an earlier session, else
around a new one. Knows no other rooms."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from ...clock import Clock
from ...engine.api import CardInfo, Close, EngineClient, LatencyClass, RefusalReason, Refused, SuspendableEngine
from ..audience import Audience
from ..counters import RoomsCounters
from ..drivers import TURNS, BadDrivers, DriversRule, PlaceSpec
from ..journal.events import Origin, PromptAsked
from ..journal.journal import Journal, JournalSpec
from ..journal.replay import REDACTED
from ..journal.script import MadeBy
from ..messages import AdapterChoice, Prompt, Transition
from ..session.session import Session
from ..session.spec import SessionSpec
from .past import PastRooms
from .playback import Playback, ReplayPlan
from .refusals import refusal
from .room import Room, RoomSpec
from .room_record import RoomRecord
from .suspend import RoomSuspension

log = logging.getLogger(__name__)

UNWRITTEN = 64
"""Entries in memory of a journal that nobody writes down."""


@dataclass(frozen=True, slots=True)
class RoomsSpec:
    """What a server's rooms are like. `card`: of a room of which nobody says which. `prompt` None = the card's first
    suggestion; `steps` None = the recipe's. `adapters`: the stack that worlds begin with. `drivers`: how several people
    drive a room of which nobody says it.
    """

    card: str
    prompt: str | None = None
    steps: int | None = None
    latency_class: LatencyClass = LatencyClass.INTERACTIVE
    lease_s: float = 60.0
    rooms: int = 64
    seats: int = 32
    adapters: tuple[AdapterChoice, ...] = ()
    drivers: DriversRule = TURNS


@dataclass(slots=True)
class RoomEntry:
    """A room by its name, from the first join on. `joining`: joins that wait for its session.

    `asked`: the session that the engine has been asked for, '' while a suspended one is restored. `forgotten`: its name
    is free again. `card`: its world's, as who opened it asked; None = whichever. `drivers`: how several drive it.
    """

    name: str
    card: str | None
    drivers: DriversRule
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
        past: PastRooms | None,
    ) -> None:
        self._past = past
        self._door, self._journal, self._clock, self._spec = door, journal, clock, spec
        self._counters, self._entropy, self._suspension, self._futures = counters, entropy, suspension, futures

    def unsuitable(self, card: str | None, drivers: DriversRule | None) -> Refused | None:
        """What this server does not have, as far as it knows its cards by now: no place in line for that."""
        cards = {info.name: info for info in self._door.cards()}
        if not cards:
            return None
        if card is not None and card not in cards:
            detail = f"no world '{card}' here: there are {', '.join(cards)}"
            return refusal(RefusalReason.UNKNOWN_CARD, detail, retry_after_s=0.0)
        info = cards.get(card or self._spec.card)
        places = None if info is None else _places(drivers or self._spec.drivers, info)
        return places if isinstance(places, Refused) else None

    async def open(self, entry: RoomEntry, seed: int) -> Room | Refused:
        return await self._restored(entry) or await self._from_the_past(entry) or await self._opened(entry, seed)

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
        drivers = DriversRule.read(record.drivers)
        session = self._session(entry, record.session.card, record.session.name, record.session.seed, drivers)
        entry.asked = ""
        restored = await suspension.restore(suspended, session)
        entry.asked = asked
        if isinstance(restored, Refused):
            return restored
        return self._room(entry, session, record) if restored else None

    async def _from_the_past(self, entry: RoomEntry) -> Room | Refused | None:
        """None when nobody planned that. What cannot be had leaves the plan for the next attempt."""
        past = self._past
        world = None if past is None else past.planned(entry.name)
        if past is None or world is None:
            return None
        if isinstance(world, ReplayPlan):
            return await self._replayed(entry, world, past.engine)
        name, seed = entry.asked, world.script.root(world.origin.epoch).seed
        session = self._session(entry, world.card, name, seed, entry.drivers, world.origin)
        answer = await past.engine.restore(world.written_down(past.engine, name), session.take)
        if isinstance(answer, Refused):
            return answer
        here = MadeBy.of(answer)
        if not world.made.same_as(here):
            self._door.post(Close(session=name))
            detail = f"it was made with {world.made}; this server has {here}"
            return refusal(RefusalReason.CONFLICT, detail, retry_after_s=0.0)
        past.opened(entry.name)
        session.begin_at(world.record(name, answer.weights), answer, world.words)
        return self._room(entry, session)

    async def _replayed(self, entry: RoomEntry, plan: ReplayPlan, engine: SuspendableEngine) -> Room | Refused:
        """A session that only seems to live: nothing of it is journaled, and it ends with what was recorded."""
        playback, asked = Playback(engine, plan, self._clock), plan.asked(plan.first)
        unwritten = Journal(self._clock, spec=JournalSpec(buffer=UNWRITTEN))
        opening = entry.asked, entry.name, plan.card, plan.script.opened.seed
        spec = SessionSpec(
            *opening,
            prompt=plan.words or _shown(asked),
            steps=plan.made.steps or None,
            replays=plan.session,
            replay_chunks=len(plan.steps),
            counterfactual="other words" if plan.words else "",
        )
        session = Session(spec, playback, unwritten, self._clock, self._counters, entry.audience)

        def said(asked: PromptAsked) -> None:
            session.prompt(Prompt(id=0, text=_shown(asked), transition=Transition.CUT), "", lambda answer: None)

        def over(differ: int | None) -> None:
            judged = "a counterfactual" if differ is None else f"{differ} chunks differ"
            log.info("a replay of session %s is over: %s", plan.session, judged)
            session.close("the replay is over")

        playback.said, playback.over, session.replay_from = said, over, playback.seek
        name, entry.asked = entry.asked, ""
        refused = await session.open()
        entry.asked = name
        return refused or self._room(entry, session)

    async def _opened(self, entry: RoomEntry, seed: int) -> Room | Refused:
        session = self._session(entry, entry.card or self._spec.card, entry.asked, seed, entry.drivers)
        return await session.open() or self._room(entry, session)

    def _session(
        self, entry: RoomEntry, card: str, name: str, seed: int, drivers: DriversRule, origin: Origin | None = None
    ) -> Session:
        spec = self._spec
        started = spec.prompt, spec.steps, spec.latency_class, spec.adapters, drivers, origin
        session_spec = SessionSpec(name, entry.name, card, seed, *started)
        parts = self._door, self._journal, self._clock, self._counters, entry.audience
        return Session(session_spec, *parts, self._futures)

    def _room(self, entry: RoomEntry, session: Session, record: RoomRecord | None = None) -> Room | Refused:
        assert session.card is not None, "the session is open"
        places = _places(session.spec.drivers, session.card)
        if isinstance(places, Refused):
            session.close("drivers")
            return places
        spec = RoomSpec(entry.name, self._spec.lease_s, self._spec.seats)
        return Room(spec, session, entry.audience, self._clock, self._counters, self._entropy, places, record)


def _shown(asked: PromptAsked | None) -> str:
    """The words as people see them, '' = none, or they were taken out."""
    return "" if asked is None or asked.text.startswith(REDACTED) else asked.text


def _places(drivers: DriversRule, card: CardInfo) -> tuple[PlaceSpec, ...] | Refused:
    try:
        return drivers.places([control.name for control in card.controls], card.players)
    except BadDrivers as error:
        return refusal(RefusalReason.DRIVERS, str(error), retry_after_s=0.0)
