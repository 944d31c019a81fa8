"""One world through time: its state, inputs, prompt memory, epoch and journal. Outlives every connection.

    engine                     session                           room
    ChunkDue(n)  ----------->  sample inbox + prompt mix
                 <-----------  Begin(n, conditions)
    ChunkDone(n) ----------->  Applied(n) to who steered  ---->  reply
    Frame        ----------->  older epoch? dropped       ---->  every viewer

Knows no participant but by name: what viewers get goes through its `Audience`.
"""

from typing import assert_never

from ...clock import Clock
from ...engine import api
from .. import messages
from ..audience import Audience
from ..counters import RoomsCounters
from ..journal import events
from ..journal.journal import Journal
from ..states import Cause, may, move
from .ack import PendingAck, Reply
from .adapters import SessionStack
from .chronicle import Chronicle
from .faults import FaultsTold
from .futures import Future, Futures
from .inbox import Inbox, keymap, partly
from .inflight import InflightInputs
from .prompting import Prompting
from .prompts import PromptMemory
from .spec import SessionRecord, SessionSpec
from .turns import Turns


class Session:
    """A world in the engine. Everything but `open` returns at once."""

    def __init__(
        self,
        spec: SessionSpec,
        door: api.EngineClient,
        journal: Journal,
        clock: Clock,
        counters: RoomsCounters,
        audience: Audience,
        engine: api.SuspendableEngine | None = None,
    ) -> None:
        self.spec, self.state = spec, messages.WorldState.OPENING
        self.epoch, self.next_chunk = 0, 0
        self.prompts, self._inflight = PromptMemory(), InflightInputs()
        self.card: api.CardInfo | None = None
        self._chronicle = Chronicle(journal, spec.name, lambda: self.epoch)
        self.record = self._chronicle.record
        """Journal an event; also for what happens around the session: who came, went or took the wheel."""
        self._futures = Futures(spec.name, door, clock, engine)
        self._door, self._counters, self._audience = door, counters, audience
        self._inbox: Inbox | None = None
        self._paused = False
        given = door, self.record, self._inflight, audience
        self._prompting = Prompting(self.prompts, *given, lambda: self.turns.worlds)
        self.adapters = SessionStack(*given, lambda: self.world)
        told = self._chronicle, self._prompting, self.prompts, self._inflight, audience
        asked = self._playing, spec.seed_of
        self.turns = Turns(
            spec.seed, self._futures, door, *told, *asked, self._turned, self._begin_when_prompted, self.take
        )
        self._first_chunk: int | None = None
        """The chunk that is due while the world waits for its first prompt."""
        self._faults = FaultsTold(self.record, audience, self._prompting, self.adapters, counters, clock)

    @property
    def world(self) -> str:
        """The name of the world that plays, as the engine knows it."""
        return self._futures.world

    # ---- life -----------------------------------------------------------------------------------------------------

    async def open(self) -> api.Refused | None:
        """Ask the engine for a place, in line under the room's name; the refusal when it has none."""
        answer = await self._door.open(self.spec.ask(), self.take)
        if isinstance(answer, api.Refused):
            self._counters.sessions_refused += 1
            self.state = move(self.state, Cause.REFUSED, lambda *_: None)
            return answer
        self._counters.sessions_opened += 1
        self.card = card = answer.card
        self._futures.weights = answer.weights
        self.record(self.spec.opened(answer))
        self._move(Cause.OPENED)
        if (text := self.spec.first_text(card)) is not None:
            self._prompting.ask(text, messages.Transition.CUT, frames=0)
        self.adapters.begin(self.spec.adapters, card)
        self._begin_when_prompted(self._first_chunk)
        return None

    def restore(self, record: SessionRecord, card: api.CardInfo) -> None:
        """`open` for a session whose world the engine has restored: it stands still until somebody is connected."""
        self.card, self._futures.weights = card, record.weights
        self.epoch, self.next_chunk, self._paused = record.epoch, record.chunk, record.paused
        self.prompts.restore(record.prompts)
        self.adapters.restore(record.adapters)
        noise = record.branch if record.noise < 0 else record.noise
        now = Future(record.world or record.name, record.branch, record.epoch, record.chunk, noise)
        self._futures.resumed(now, record.branches, record.epochs)
        self._chronicle.go_on(record.journaled, record.shown)
        self._chronicle.branch = record.branch
        self._move(Cause.RESTORED)

    def suspended(self, shown: bool = True) -> SessionRecord:
        """What `restore` needs besides the world; `shown` False: but for what can be rated, which the journal tells."""
        names = self.spec.name, self._opened().name, self._futures.weights
        at, paused, number = (self.spec.seed, self.epoch, self.next_chunk), self._paused, self._chronicle.number
        world, noises = self._futures.recorded()
        kept = self.prompts.record(), world
        ratable = self._chronicle.ratable if shown else ()
        return SessionRecord(*names, *at, paused, number, *kept, *noises, self.adapters.now, ratable)

    def let_go(self) -> None:
        """It was suspended: the engine frees its slot, the journal stays open for whoever restores it."""
        self.turns.stand_alone("")
        self.state = messages.WorldState.CLOSED
        self._futures.forget_other()
        self._door.post(api.Close(session=self.world))
        self._chronicle.end()

    def close(self, reason: str) -> None:
        """The end: the engine frees its slot. Closing twice does nothing."""
        if not may(self.state, Cause.CLOSE):
            return
        self.turns.stand_alone("")
        self._move(Cause.CLOSE)
        self._futures.forget_other()
        self._door.post(api.Close(session=self.world))
        self._counters.sessions_closed += 1
        self.record(events.SessionClosed(reason=reason))
        self._chronicle.end()
        self._inbox = None
        self._audience.close(reason)

    def hold(self) -> None:
        """Nobody is connected: the world stands still, its caches stay."""
        if not may(self.state, Cause.ABANDONED):
            return
        running = self.state is messages.WorldState.RUNNING
        self._move(Cause.ABANDONED)
        if running:
            self.turns.tell_worlds(api.Pause)

    def end_hold(self) -> None:
        """Somebody is connected again: the world goes on as it was left."""
        if self.state is not messages.WorldState.HELD:
            return
        self._move(Cause.RETURNED_TO_PAUSE if self._paused else Cause.RETURNED)
        if not self._paused:
            self.turns.tell_worlds(api.Resume)

    # ---- steering -------------------------------------------------------------------------------------------------

    def new_inbox(self) -> Inbox:
        """An inbox for one connection."""
        card = self._opened()
        return Inbox(keymap(card.controls), len(card.controls), partly(card.controls))

    def steered_by(self, inbox: Inbox | None) -> None:
        """From the next chunk on this inbox steers; None releases every key."""
        if inbox is not None:
            inbox.flush()
        self._inbox = inbox

    def prompt(self, message: messages.Prompt, participant: str, reply: Reply) -> None:
        self._counters.prompts += self._prompting.asked(message, self._opened(), participant, reply)

    def pause(self, message: messages.PauseWorld, reply: Reply) -> None:
        if not may(self.state, Cause.PAUSE):
            reply(messages.Problem(code="not_running", detail=f"the world is {self.state}", id=message.id))
            return
        self._stand_still()
        reply(messages.Accepted(id=message.id))
        reply(messages.Applied(id=message.id, chunk=self.next_chunk))

    def resume(self, message: messages.ResumeWorld, reply: Reply) -> None:
        if not may(self.state, Cause.RESUME):
            reply(messages.Problem(code="not_paused", detail=f"the world is {self.state}", id=message.id))
            return
        self._move(Cause.RESUME)
        self._paused = False
        if self._inbox is not None:
            self._inbox.flush()  # taps at a still picture steer nothing
        self.turns.tell_worlds(api.Resume)
        reply(messages.Accepted(id=message.id))
        self._inflight.expect(PendingAck(message.id, reply))

    def reset(self, message: messages.ResetWorld, participant: str, reply: Reply) -> None:
        reply(messages.Accepted(id=message.id))
        self.start_anew(message.seed, participant)
        self._inflight.expect(PendingAck(message.id, reply))

    def start_anew(self, seed: int | None, participant: str, first_frames: api.FirstFrames | None = None) -> int:
        """A new epoch: running work is void, its frames are never shown, the prompt stays. Returns its number.

        `seed` None = one that this session has not had.
        """
        self.turns.stand_alone(participant)
        self.epoch = self._futures.start_anew()
        seed = self.spec.seed_of(self.epoch) if seed is None else seed
        self.prompts.settle()
        if self._inbox is not None:
            self._inbox.flush()
        self._door.post(api.Supersede(self.world, self.epoch, True, seed, first_frames))
        self.record(events.EpochStarted(self.epoch, seed, participant, first_frames))
        self._counters.resets += 1
        self._audience.tell(messages.StateChanged(state=self.state, epoch=self.epoch))
        return self.epoch

    def _turned(self, epoch: int) -> None:
        """The world that plays is another one, in a new epoch."""
        self._cancelled(self.epoch, self.next_chunk - 1)
        self.epoch = epoch
        if self._inbox is not None:
            self._inbox.flush()
        self._audience.tell(messages.StateChanged(state=self.state, epoch=self.epoch))

    def feedback(self, message: messages.Feedback, participant: str, reply: Reply) -> None:
        """Only of a chunk that was shown."""
        self._counters.feedback += self._chronicle.rated(message, participant, reply)

    def request_key(self, joined: bool, rendition: api.Rendition = api.Rendition.H264) -> None:
        self._door.post(api.RequestKey(session=self.world, joined=joined, rendition=rendition))

    # ---- the engine's events --------------------------------------------------------------------------------------

    def take(self, event: api.Event) -> None:
        if self.state is messages.WorldState.CLOSED or (self.card is None and isinstance(event, api.Fault)):
            return
        if event.session != self.world:
            self.turns.beside.take(event)
            return
        match event:
            case api.ChunkDue():
                if not self._inflight.outstanding(self.epoch, event.chunk):  # else the answer is on its way
                    self._begin_when_prompted(event.chunk)
            case api.Frame():
                self._frame(event)
            case api.Rendered():
                self._audience.rendered(event, self._inflight.hold_us(event.frame))
            case api.ChunkDone():
                self._done(event)
            case api.ChunkCancelled():
                self._counters.chunks_cancelled += 1
                self.record(events.ChunkDropped(chunk=event.chunk, epoch=event.epoch))
                self._cancelled(event.epoch, event.chunk)
            case api.PromptEncoded():
                self._prompting.encoded(event)
                self._begin_when_prompted(self._first_chunk)
            case api.AdaptersReady():
                self.adapters.ready(event)
                self._begin_when_prompted(self._first_chunk)
            case api.Fault():
                self._fault(event)
            case _:
                assert_never(event)

    def _begin_when_prompted(self, chunk: int | None) -> None:
        """The first chunk of a world waits for the embedding of its first prompt; no later one ever waits."""
        if chunk is None:
            return
        if self.card is None or self.prompts.first_waits or self.adapters.waits:
            self._first_chunk = chunk
        else:
            self._begin(chunk)

    def _begin(self, chunk: int) -> None:
        card, epoch = self._opened(), self.epoch
        self._first_chunk = None
        self._prompting.begin(chunk)
        conditions = self._inflight.begin(epoch, chunk, card, self._inbox, self.prompts, self.adapters.now.shares)
        self.next_chunk = chunk + 1
        self._counters.chunks_begun += 1
        self.record(events.ChunkBegun(chunk=chunk, conditions=conditions))
        # Last, because the engine may answer within the call.
        self._door.post(api.Begin(session=self.world, chunk=chunk, conditions=conditions))
        self.turns.beside.began(chunk, conditions)

    def _cancelled(self, epoch: int, chunk: int) -> None:
        if self._inflight.cancelled(epoch, chunk, same_world=epoch == self.epoch):
            self.prompts.rebuild()

    def _frame(self, frame: api.Frame) -> None:
        if frame.epoch < self.epoch:
            self._counters.frames_old_epoch += 1
            return
        self._counters.frames += 1
        self._chronicle.shown(frame)
        self._audience.show(frame, self._inflight.hold_us(frame))

    def _done(self, event: api.ChunkDone) -> None:
        self._counters.chunks_done += 1
        self._counters.chunks_late += event.late
        conditions = self._inflight.done(event.epoch, event.chunk)
        if conditions is not None:
            self._futures.committed(event, conditions)
        self.record(events.ChunkCommitted(event.chunk, event.epoch, event.digest, event.late_us, event.timings))

    def _fault(self, event: api.Fault) -> None:
        if event.of_chunk and self._inflight.failed(self.epoch, self.next_chunk - 1):
            self.prompts.rebuild()
        self._faults.tell(event)
        if event.ends:
            self.close(event.code)
        elif event.fatal:
            self._stand_still()
        else:
            self._begin_when_prompted(self._first_chunk)

    def _stand_still(self) -> None:
        """Until who drives resumes the world."""
        if may(self.state, Cause.PAUSE):
            self._move(Cause.PAUSE)
        self._paused = True
        self.turns.tell_worlds(api.Pause)

    def _move(self, cause: Cause) -> None:
        self.state = move(self.state, cause, lambda *moved: self.record(events.StateMoved(*moved)))
        self._audience.tell(messages.StateChanged(state=self.state, epoch=self.epoch))

    def _playing(self) -> api.CardInfo | None:
        return self.card if self.state is messages.WorldState.RUNNING else None

    def _opened(self) -> api.CardInfo:
        assert self.card is not None, "the session is open"
        return self.card
