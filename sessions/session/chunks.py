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
from .beside import Beside
from .chronicle import Chronicle
from .futures import Futures
from .helm import Helm
from .inflight import InflightInputs
from .prompting import Prompting
from .prompts import PromptMemory


class Chunks:
    """`epoch`: the world's; `next`: the chunk after the last that was begun; `card` None until the session is open.

    `beside()`: the futures that play beside it.
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
        beside: Callable[[], Beside],
    ) -> None:
        self._door, self._chronicle, self._counters, self._audience = door, chronicle, counters, audience
        self._inflight, self._futures, self._beside = inflight, futures, beside
        self._prompts, self._prompting, self._adapters = prompts, prompting, adapters
        self.epoch, self.next = 0, 0
        self.card: api.CardInfo | None = None
        self.helm = Helm()
        self._due: int | None = None
        """The chunk that is due while the world waits."""

    def open(self, card: api.CardInfo, vote: bool) -> None:
        """The session is open. `vote`: several drivers steer by vote."""
        self.card, self.helm = card, Helm(card, vote)

    def asked_for(self, chunk: int) -> None:
        if not self._inflight.outstanding(self.epoch, chunk):  # else the answer is on its way
            self.due(chunk)

    def due(self, chunk: int) -> None:
        """Begin it. The first chunk of a world waits for its first prompt and adapters; one beside which others play
        waits for those that are late."""
        if self.card is None or self._prompts.first_waits or self._adapters.waits or self._beside().behind(chunk):
            self._due = chunk
        else:
            self._begin(chunk, self.card)

    def go_on(self) -> None:
        """Begin the chunk that waits, if it need not wait any more."""
        if self._due is not None:
            self.due(self._due)

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
        self.epoch, self._due = epoch, None
        self.helm.flush()

    def shown(self, frame: api.Frame) -> None:
        if frame.epoch < self.epoch:
            self._counters.frames_old_epoch += 1
            return
        self._counters.frames += 1
        self._chronicle.shown(frame)
        self._audience.show(frame, self._inflight.inputs(frame))

    def _begin(self, chunk: int, card: api.CardInfo) -> None:
        self._due = None
        self._prompting.begin(chunk)
        shares = self._adapters.now.shares
        conditions = self._inflight.begin(self.epoch, chunk, card, self.helm, self._prompts, shares)
        self.next = chunk + 1
        self._counters.chunks_begun += 1
        self._chronicle.record(events.ChunkBegun(chunk, conditions, self._inflight.drivers(self.epoch, chunk)))
        # Last, because the engine may answer within the call.
        keep = self._chronicle.wants_latents(self.epoch, chunk)
        self._door.post(api.Begin(self._futures.world, chunk, conditions, keep))
        self._beside().began(chunk, conditions)

    def _void(self, epoch: int, chunk: int) -> None:
        if self._inflight.cancelled(epoch, chunk, same_world=epoch == self.epoch):
            self._prompts.rebuild()
