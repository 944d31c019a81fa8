"""A session's chunks: what each is made under, and what becomes of it.

    due(n)       inputs and prompts until now -> Begin(n, conditions)         the first one waits for words and adapters
    done(n)      committed, journaled, and who steered it is answered
    cancelled(n) void: the next one gets its taps and answers its messages

Knows neither states nor people.
"""

from collections.abc import Callable

from ...engine import api
from ..audience import Audience
from ..counters import RoomsCounters
from ..journal import events
from .adapters import SessionStack
from .chronicle import Chronicle
from .futures import Futures
from .helm import Helm
from .inflight import InflightInputs
from .prompting import Prompting
from .prompts import PromptMemory


class Chunks:
    """`epoch`: the world's; `next`: the chunk after the last that was begun; `card` None until the session is open.

    `began(chunk, conditions)` hears of every chunk that the world that plays begins.
    """

    def __init__(
        self,
        door: api.EngineClient,
        chronicle: Chronicle,
        counters: RoomsCounters,
        audience: Audience,
        inflight: InflightInputs,
        futures: Futures,
        prompts: PromptMemory,
        prompting: Prompting,
        adapters: SessionStack,
        began: Callable[[int, api.Conditions], None],
    ) -> None:
        self._door, self._chronicle, self._counters, self._audience = door, chronicle, counters, audience
        self._inflight, self._futures, self._began = inflight, futures, began
        self._prompts, self._prompting, self._adapters = prompts, prompting, adapters
        self.epoch, self.next = 0, 0
        self.card: api.CardInfo | None = None
        self.helm = Helm()
        self._first: int | None = None
        """The chunk that is due while the world waits for its first prompt."""

    def open(self, card: api.CardInfo, vote: bool) -> None:
        """The session is open. `vote`: several drivers steer by vote."""
        self.card, self.helm = card, Helm(card, vote)

    def asked_for(self, chunk: int) -> None:
        if not self._inflight.outstanding(self.epoch, chunk):  # else the answer is on its way
            self.due(chunk)

    def due(self, chunk: int) -> None:
        """Begin it. The first chunk of a world waits for the embedding of its first prompt; no later one ever waits."""
        if self.card is None or self._prompts.first_waits or self._adapters.waits:
            self._first = chunk
        else:
            self._begin(chunk, self.card)

    def go_on(self) -> None:
        """Begin the first chunk, if it waits and need not wait any more."""
        if self._first is not None:
            self.due(self._first)

    def done(self, event: api.ChunkDone) -> None:
        self._counters.chunks_done += 1
        self._counters.chunks_late += event.late
        conditions = self._inflight.done(event.epoch, event.chunk)
        if conditions is not None:
            self._futures.committed(event, conditions)
        self._chronicle.committed(event)

    def cancelled(self, event: api.ChunkCancelled) -> None:
        self._counters.chunks_cancelled += 1
        self._chronicle.record(events.ChunkDropped(chunk=event.chunk, epoch=event.epoch))
        self._void(event.epoch, event.chunk)

    def failed(self) -> None:
        """The one in flight is not made: it will be asked for again."""
        if self._inflight.failed(self.epoch, self.next - 1):
            self._prompts.rebuild()

    def turned(self, epoch: int) -> None:
        """The world that plays is another one, in a new epoch."""
        self._void(self.epoch, self.next - 1)
        self.epoch = epoch
        self.helm.flush()

    def shown(self, frame: api.Frame) -> None:
        if frame.epoch < self.epoch:
            self._counters.frames_old_epoch += 1
            return
        self._counters.frames += 1
        self._chronicle.shown(frame)
        self._audience.show(frame, self._inflight.inputs(frame))

    def _begin(self, chunk: int, card: api.CardInfo) -> None:
        self._first = None
        self._prompting.begin(chunk)
        shares = self._adapters.now.shares
        conditions = self._inflight.begin(self.epoch, chunk, card, self.helm, self._prompts, shares)
        self.next = chunk + 1
        self._counters.chunks_begun += 1
        self._chronicle.record(events.ChunkBegun(chunk, conditions, self._inflight.drivers(self.epoch, chunk)))
        # Last, because the engine may answer within the call.
        keep = self._chronicle.wants_latents(self.epoch, chunk)
        self._door.post(api.Begin(self._futures.world, chunk, conditions, keep))
        self._began(chunk, conditions)

    def _void(self, epoch: int, chunk: int) -> None:
        if self._inflight.cancelled(epoch, chunk, same_world=epoch == self.epoch):
            self._prompts.rebuild()
