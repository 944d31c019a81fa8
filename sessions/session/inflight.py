"""Chunks in flight: what each took from the inbox and the prompts, and which messages it acknowledges.

An accepted message waits until a chunk takes it. When that chunk is done the message is answered with `Applied`; when
it is cancelled the next chunk takes the message.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from ...engine.api import AdapterShare, CardInfo, Conditions, Frame
from ..messages import Applied
from .ack import PendingAck
from .inbox import Inbox, Sample, released
from .prompts import PromptMemory

CHUNKS_MAX = 64
ACKS_MAX = 256


@dataclass(slots=True)
class InflightChunk:
    """One chunk from its begin until its frames are shown."""

    inbox: Inbox | None
    sample: Sample
    conditions: Conditions
    acks: list[PendingAck] = field(default_factory=list)
    made: bool = False


class InflightInputs:
    """By (epoch, chunk). The last `CHUNKS_MAX` stay, so that late frames find theirs."""

    def __init__(self) -> None:
        self._chunks: OrderedDict[tuple[int, int], InflightChunk] = OrderedDict()
        self._waiting: list[PendingAck] = []

    def expect(self, ack: PendingAck) -> None:
        """The next chunk that begins will show this message's effect. Beyond `ACKS_MAX` the oldest is forgotten."""
        self._waiting.append(ack)
        del self._waiting[:-ACKS_MAX]

    def begin(
        self,
        epoch: int,
        chunk: int,
        card: CardInfo,
        inbox: Inbox | None,
        prompts: PromptMemory,
        adapters: tuple[AdapterShare, ...] = (),
    ) -> Conditions:
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
            adapters=adapters,
        )
        self._chunks[epoch, chunk] = InflightChunk(inbox, sample, conditions, self._waiting)
        self._waiting = []
        if len(self._chunks) > CHUNKS_MAX:
            _, oldest = self._chunks.popitem(last=False)
            self._waiting = oldest.acks + self._waiting
        return conditions

    def outstanding(self, epoch: int, chunk: int) -> bool:
        """Whether it was begun, and neither made nor cancelled since."""
        inflight = self._chunks.get((epoch, chunk))
        return inflight is not None and not inflight.made

    def adopt(self, chunk: int, conditions: Conditions) -> None:
        """A chunk of a future that plays from now on was begun before."""
        sample = released(len(conditions.controls))
        self._chunks[conditions.epoch, chunk] = InflightChunk(None, sample, conditions)

    def done(self, epoch: int, chunk: int) -> Conditions | None:
        """The chunk is committed: its messages are applied. What it was made under."""
        inflight = self._chunks.get((epoch, chunk))
        if inflight is None:
            return None
        acks, inflight.acks, inflight.made = inflight.acks, [], True
        for ack in acks:
            ack.reply(Applied(id=ack.id, chunk=chunk))
        return inflight.conditions

    def cancelled(self, epoch: int, chunk: int, same_world: bool) -> bool:
        """The chunk is void: the next one shows its messages and, in the `same_world`, gets its taps and motion.

        True when that one has to rebuild the cache in its stead.
        """
        inflight = self._chunks.pop((epoch, chunk), None)
        if inflight is None:
            return False
        self._waiting = inflight.acks + self._waiting
        if same_world and inflight.inbox is not None:
            inflight.inbox.give_back(inflight.sample)
        return same_world and inflight.conditions.recache

    def failed(self, epoch: int, chunk: int) -> bool:
        """As `cancelled`, where that chunk is not made: it will be asked for again."""
        return self.outstanding(epoch, chunk) and self.cancelled(epoch, chunk, same_world=True)

    def hold_us(self, frame: Frame) -> int:
        """From the receipt of the chunk's last input to its begin; 0 when it holds no input."""
        inflight = self._chunks.get((frame.epoch, frame.chunk))
        if inflight is None or inflight.sample.received is None:
            return 0
        return max(0, round((frame.begun - inflight.sample.received) * 1e6))
