"""Chunks in flight: what each took from the drivers and the prompts, and which messages it acknowledges.

An accepted message waits until a chunk takes it. When that chunk is done the message is answered with `Applied`; when
it is cancelled the next chunk takes the message.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from ...engine.api import AdapterShare, CardInfo, Conditions, Frame
from ..audience import FrameInput, FrameInputs
from ..journal.events import DriverInput
from ..messages import Applied
from .ack import PendingAck
from .helm import Helm, HelmSample
from .prompts import PromptMemory

CHUNKS_MAX = 64
ACKS_MAX = 256


@dataclass(slots=True)
class InflightChunk:
    """One chunk from its begin until its frames are shown."""

    sample: HelmSample
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
        helm: Helm,
        prompts: PromptMemory,
        adapters: tuple[AdapterShare, ...] = (),
    ) -> Conditions:
        """Take what steers this chunk."""
        sample = helm.sample()
        first, *others = sample.players
        conditions = Conditions(
            epoch=epoch,
            controls=first.controls,
            pointer=first.pointer,
            prompts=prompts.take(card.frames_per_chunk),
            prompt_version=prompts.number,
            input_seq=sample.seq,
            recache=prompts.take_rebuild(),
            adapters=adapters,
            others=tuple(others),
        )
        self._chunks[epoch, chunk] = InflightChunk(sample, conditions, self._waiting)
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
        self._chunks[conditions.epoch, chunk] = InflightChunk(HelmSample(()), conditions)

    def drivers(self, epoch: int, chunk: int) -> tuple[DriverInput, ...]:
        """What a chunk took from each of several drivers; () where one drives alone."""
        inflight = self._chunks.get((epoch, chunk))
        hands = () if inflight is None else inflight.sample.hands
        return tuple(each.recorded() for each in hands) if len(hands) > 1 else ()

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
        if same_world:
            inflight.sample.give_back()
        return same_world and inflight.conditions.recache

    def failed(self, epoch: int, chunk: int) -> bool:
        """As `cancelled`, where that chunk is not made: it will be asked for again."""
        return self.outstanding(epoch, chunk) and self.cancelled(epoch, chunk, same_world=True)

    def inputs(self, frame: Frame) -> FrameInputs:
        """What a frame contains of everybody who steered its chunk."""
        inflight = self._chunks.get((frame.epoch, frame.chunk))
        count = len(frame.controls) if inflight is None else len(inflight.conditions.controls)
        hands = () if inflight is None else inflight.sample.hands
        drivers = {each.hand.participant: each.told(frame, count) for each in hands}
        nobody = FrameInput(frame.input_seq, 0, frame.controls[:count])
        return FrameInputs(next(iter(drivers.values()), nobody), drivers)
