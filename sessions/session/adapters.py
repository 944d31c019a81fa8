"""A session's adapters: the stack that its chunks are made with, and the one that is on its way to be it.

    Adapt -> asked (journaled) -> engine -> ready (journaled) -> everybody is told -> the next chunk's conditions

A swap is whole and takes effect between two chunks; until then, and where it cannot be had, the old stack stays.
"""

from collections.abc import Callable

import msgspec

from ...engine import api
from ..audience import Audience
from ..journal import events
from ..messages import Accepted, Adapt, AdapterChoice, AdaptersChanged, Problem
from .ack import PendingAck, Reply
from .inflight import InflightInputs

WAITING_MAX = 4


class AdaptersRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the world has now; for one that is suspended."""

    version: int = 0
    stack: tuple[AdapterChoice, ...] = ()
    shares: tuple[api.AdapterShare, ...] = ()


class SessionStack:
    """`world`: the name of the world that plays, as the engine knows it."""

    def __init__(
        self,
        door: api.EngineClient,
        record: Callable[[events.JournalEvent], None],
        inflight: InflightInputs,
        audience: Audience,
        world: Callable[[], str],
    ) -> None:
        self._door, self._record, self._inflight, self._audience = door, record, inflight, audience
        self._world = world
        self._waiting: dict[int, tuple[tuple[AdapterChoice, ...], PendingAck | None]] = {}
        self._last = 0
        self.now = AdaptersRecord()

    @property
    def waits(self) -> bool:
        """A world that is about to get its first stack."""
        return self.now.version == 0 and bool(self._waiting)

    def restore(self, record: AdaptersRecord) -> None:
        self.now, self._last = record, record.version

    def begin(self, stack: tuple[AdapterChoice, ...], card: api.CardInfo) -> None:
        """Ask for what a world begins with, if its card takes any."""
        if stack and card.adapters:
            self.ask(stack)

    def adapt(self, message: Adapt, card: api.CardInfo | None, participant: str, reply: Reply) -> bool:
        """False when it is refused; the reason goes to who asked."""
        names = () if card is None else card.adapters
        unknown = [choice.name for choice in message.stack if choice.name not in names]
        if not names:
            reply(Problem(code="no_adapters", detail="this world takes no adapters", id=message.id))
        elif len(self._waiting) >= WAITING_MAX:
            reply(Problem(code="busy", detail="too many adapters are on their way", id=message.id))
        elif unknown:
            detail = f"there is no adapter '{unknown[0]}' here: there are {', '.join(names)}"
            reply(Problem(code="bad_adapter", detail=detail, id=message.id))
        else:
            reply(Accepted(id=message.id))
            self.ask(message.stack, participant, PendingAck(message.id, reply))
            return True
        return False

    def ask(self, stack: tuple[AdapterChoice, ...], participant: str = "", ack: PendingAck | None = None) -> None:
        """Have the engine make a stack ready; it may answer within the call."""
        self._last += 1
        self._waiting[self._last] = stack, ack
        self._record(events.StackAsked(participant, self._last, stack))
        asks = tuple(api.AdapterAsk(choice.name, choice.scale) for choice in stack)
        self._door.post(api.SetAdapters(session=self._world(), version=self._last, stack=asks))

    def ready(self, event: api.AdaptersReady) -> None:
        """From the next chunk on the world has it; one that a newer stack has overtaken is forgotten."""
        stack, ack = self._waiting.pop(event.version, ((), None))
        self._record(events.StackReady(event.version, event.shares, event.rank, event.bytes))
        if ack is not None:
            self._inflight.expect(ack)
        if event.version > self.now.version:
            self.now = AdaptersRecord(event.version, stack, event.shares)
            self._audience.tell(AdaptersChanged(version=event.version, stack=stack))

    def failed(self, event: api.Fault) -> bool:
        """Whether it is a stack that cannot be had, and who asked for it was told."""
        _, ack = self._waiting.pop(event.adapters_version, ((), None))
        if ack is not None:
            ack.reply(Problem(code=event.code, detail=event.detail, id=ack.id))
        return ack is not None
