"""Chunks under way: what each took from the inbox and the prompts, and which steers it is to acknowledge.

A steer waits until a chunk takes it; when that chunk is done it is applied, when it is cancelled the next one takes it.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from ...engine.api import CardInfo, Conditions
from ..messages import Applied, ServerMessage
from .inbox import Inbox, Sample, released
from .prompts import PromptMemory

Reply = Callable[[ServerMessage], None]

KEPT_FLIGHTS = 64
MOST_STEERS = 256


@dataclass(slots=True)
class PendingAck:
    """An accepted message whose effect is still to come."""

    id: int
    reply: Reply


@dataclass(slots=True)
class InflightChunk:
    """One chunk from its begin until its frames are shown."""

    inbox: Inbox | None
    sample: Sample
    recache: bool
    steers: list[PendingAck] = field(default_factory=list)


class InflightInputs:
    """By (epoch, chunk); the last `KEPT_FLIGHTS` are kept so that late frames find theirs."""

    def __init__(self) -> None:
        self._flights: OrderedDict[tuple[int, int], InflightChunk] = OrderedDict()
        self._waiting: list[PendingAck] = []

    def expect(self, steer: PendingAck) -> None:
        """The next chunk that begins will show this steer. Beyond `MOST_STEERS` the oldest is forgotten."""
        self._waiting.append(steer)
        del self._waiting[:-MOST_STEERS]

    def begin(self, epoch: int, chunk: int, card: CardInfo, inbox: Inbox | None, prompts: PromptMemory) -> Conditions:
        """Take what steers this chunk; `inbox` None = nobody does."""
        sample = inbox.sample() if inbox is not None else released(len(card.controls))
        conditions = Conditions(
            epoch=epoch,
            controls=sample.controls,
            pointer=sample.pointer,
            prompts=prompts.take(card.frames_per_chunk),
            prompt_version=prompts.number,
            input_seq=sample.seq,
            recache=prompts.take_rebuild(),
        )
        self._flights[epoch, chunk] = InflightChunk(inbox, sample, conditions.recache, self._waiting)
        self._waiting = []
        if len(self._flights) > KEPT_FLIGHTS:
            _, oldest = self._flights.popitem(last=False)
            self._waiting = oldest.steers + self._waiting
        return conditions

    def done(self, epoch: int, chunk: int) -> None:
        """The chunk is committed: its steers are applied."""
        flight = self._flights.get((epoch, chunk))
        if flight is None:
            return
        steers, flight.steers = flight.steers, []
        for steer in steers:
            steer.reply(Applied(id=steer.id, chunk=chunk))

    def cancelled(self, epoch: int, chunk: int, same_world: bool) -> bool:
        """The chunk is void: the next one shows its steers and, in the `same_world`, gets its taps and motion.

        True when that one has to rebuild the cache in its stead.
        """
        flight = self._flights.pop((epoch, chunk), None)
        if flight is None:
            return False
        self._waiting = flight.steers + self._waiting
        if same_world and flight.inbox is not None:
            flight.inbox.give_back(flight.sample)
        return same_world and flight.recache

    def hold_us(self, epoch: int, chunk: int, begun: float) -> int:
        """From the receipt of the chunk's last input to its begin; 0 when it holds no input."""
        flight = self._flights.get((epoch, chunk))
        if flight is None or flight.sample.received is None:
            return 0
        return max(0, round((begun - flight.sample.received) * 1e6))
