"""What one session writes into the journal: each event with its epoch and branch, and with the entry that led to it.

    input.received --> chunk.begun --> chunk.committed | chunk.dropped    prompt.asked --> prompt.ready --> segment

Also knows which chunks people have seen, because only those can be liked. Knows no engine and no viewer.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from ...engine.api import CardInfo, ChunkDone, Frame, Opened
from ..journal import events
from ..journal.entry import Stamp
from ..journal.journal import Journal
from ..messages import Accepted, Feedback, Problem
from .ack import Reply
from .spec import SHOWN_MAX, SessionSpec, ShownChunk


class Chronicle:
    """`epoch` tells the world's epoch of now."""

    def __init__(self, journal: Journal, session: str, epoch: Callable[[], int]) -> None:
        self._journal, self._session, self._epoch = journal, session, epoch
        self.branch = 0
        self._input, self._intent_by = 0, 0
        self._intents: dict[int, tuple[int, int]] = {}
        self.ended = False
        self._latents_every = 0
        """Chunks from one whose latents are kept to the next, 0 = none."""
        self._firsts: dict[int, int] = {}
        self._asked: dict[int, int] = {}
        self._begun: OrderedDict[tuple[int, int], int] = OrderedDict()
        self._shown: OrderedDict[int, ShownChunk] = OrderedDict()

    @property
    def number(self) -> int:
        """Of the last entry."""
        return self._journal.number(self._session)

    def record(self, event: events.JournalEvent, epoch: int | None = None, branch: int | None = None) -> None:
        """`epoch`, `branch`: of a future that does not lead."""
        branch = self.branch if branch is None else branch
        cause = self._cause(event)
        if isinstance(event, events.ChunkBegun):
            self._segment(event, branch)
        stamp = Stamp(self._epoch() if epoch is None else epoch, branch, cause)
        number = self._journal.record(self._session, event, stamp)
        match event:
            case events.InputReceived():
                self._input = number
            case events.PromptAsked():
                self._asked[event.number] = number
            case events.PromptReady() | events.EpochStarted() | events.WorldTurned():
                self._intent_by = number
            case events.ChunkBegun():
                self._begun[event.conditions.epoch, event.chunk] = number
                if len(self._begun) > SHOWN_MAX:
                    self._begun.popitem(last=False)
            case _:
                pass

    @property
    def ratable(self) -> tuple[ShownChunk, ...]:
        """Chunks that can be rated, in the order in which they were shown."""
        return tuple(self._shown.values())

    def open(self, spec: SessionSpec, answer: Opened) -> None:
        """The session's first entry."""
        self._keep_latents(answer.card)
        self.record(spec.opened(answer, self._latents_every))

    def wants_latents(self, epoch: int, chunk: int) -> bool:
        """Of the first chunk of every epoch, and of one in `_latents_every` from there on."""
        if not self._latents_every:
            return False
        first = self._firsts.setdefault(epoch, chunk)
        return (chunk - first) % self._latents_every == 0

    def committed(self, done: ChunkDone, branch: int | None = None) -> None:
        """A chunk is made. `branch`: of a future that does not lead."""
        event = events.ChunkCommitted(done.chunk, done.epoch, done.digest, done.late_us, done.timings)
        self.record(event, None if branch is None else done.epoch, branch)
        if done.latents and self._journal.latents is not None:
            self._journal.latents.keep(self._session, done.digest, done.latents)

    def go_on(self, number: int, shown: Iterable[ShownChunk], card: CardInfo) -> None:
        """Continue what an earlier process wrote up to `number`; what it had `shown` can still be rated."""
        self._journal.go_on(self._session, number)
        self._shown.update((each.chunk, each) for each in shown)
        self._keep_latents(card)

    def end(self) -> None:
        self.ended = True
        self._journal.forget(self._session)

    def shown(self, frame: Frame) -> None:
        """A frame went out to the viewers."""
        self._shown[frame.chunk] = ShownChunk(frame.chunk, frame.epoch, frame.frame)
        self._shown.move_to_end(frame.chunk)
        if len(self._shown) > SHOWN_MAX:
            self._shown.popitem(last=False)

    def rated(self, message: Feedback, participant: str, reply: Reply) -> bool:
        """Journal a like or dislike; False for a chunk that nobody was shown, or too long ago."""
        shown = self._shown.get(message.chunk)
        if shown is None:
            detail = f"chunk {message.chunk} was not shown, or too long ago to be rated"
            reply(Problem(code="not_shown", detail=detail, id=message.id))
            return False
        self.record(events.FeedbackGiven(participant, message.chunk, message.value, shown.epoch, shown.frame))
        reply(Accepted(id=message.id))
        return True

    def _keep_latents(self, card: CardInfo) -> None:
        keeper = self._journal.latents
        self._latents_every = 0 if keeper is None else keeper.every(card.tolerance)

    def _cause(self, event: events.JournalEvent) -> int:
        match event:
            case events.ChunkBegun():
                taken, self._input = self._input, 0
                return taken
            case events.ChunkCommitted() | events.ChunkDropped():
                return self._begun.pop((event.epoch, event.chunk), 0)
            case events.PromptReady():
                return self._asked.pop(event.number, 0)
            case _:
                return 0

    def _segment(self, begun: events.ChunkBegun, branch: int) -> None:
        """A new segment where the intent is another one."""
        conditions = begun.conditions
        intent = conditions.epoch, conditions.prompt_version
        if intent != self._intents.get(branch):
            self._intents[branch] = intent
            event = events.SegmentStarted(chunk=begun.chunk, prompt_version=conditions.prompt_version)
            self._journal.record(self._session, event, Stamp(conditions.epoch, branch, self._intent_by))
