"""One world through time: its state, inputs, prompt memory, epoch and journal. Outlives every connection.

    engine                     session                           room
    ChunkDue(n)  ----------->  sample inbox + prompt mix
                 <-----------  Begin(n, conditions)
    ChunkDone(n) ----------->  Applied(n) to who steered  ---->  reply
    Frame        ----------->  older epoch? dropped       ---->  every viewer

Knows no participant but by name: what viewers get goes through its `Audience`.
"""

from collections.abc import Callable
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
from .chunks import Chunks
from .faults import FaultsTold
from .futures import Future, Futures
from .helm import Helm
from .inbox import Inbox
from .inflight import InflightInputs
from .prompt_versions import PromptVersion
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
        self._door, self._counters, self._audience, self._paused = door, counters, audience, False
        self.set_bitrate = door.post
        self.prompts, self._inflight = PromptMemory(), InflightInputs()
        self._chronicle = Chronicle(journal, spec.name, lambda: self.epoch)
        self.record = self._chronicle.record
        """Journal an event; also for what happens around the session: who came, went or took the wheel."""
        self.replay_from: Callable[[int], str] = lambda chunk: "this is no replay"
        """Play on from a chunk; why not, '' = it will. Set by who shows a session again."""
        self._futures = Futures(spec.name, door, clock, engine)
        given = door, self.record, self._inflight, audience
        self._prompting = Prompting(self.prompts, *given, lambda: self.turns.worlds)
        self.adapters = SessionStack(*given, lambda: self.world)
        self._faults = FaultsTold(self.record, audience, self._prompting, self.adapters, counters, clock)
        chronicled = self._chronicle, counters, audience, self._inflight, self._futures
        steering = self.prompts, self._prompting, self.adapters
        self._chunks = Chunks(door, *chronicled, *steering, lambda: self.turns.beside)
        told = self._chronicle, self._prompting, self.prompts, self._inflight, audience
        asked = self._playing, spec.seed_of
        begin, fault, go_on = self._chunks.due, self._faults.tell, self._chunks.go_on
        self.turns = Turns(spec.seed, self._futures, door, *told, *asked, self._turned, begin, self.take, fault, go_on)

    @property
    def epoch(self) -> int:
        return self._chunks.epoch

    @property
    def next_chunk(self) -> int:
        return self._chunks.next

    @property
    def card(self) -> api.CardInfo | None:
        return self._chunks.card

    @property
    def helm(self) -> Helm:
        """What its drivers do, put together."""
        return self._chunks.helm

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
        card = answer.card
        self._chunks.open(card, self.spec.votes)
        self._futures.weights = answer.weights
        self._chronicle.open(self.spec, answer)
        self._move(Cause.OPENED)
        if (text := self.spec.first_text(card)) is not None:
            self._prompting.ask(text, messages.Transition.CUT, frames=0)
        self.adapters.begin(self.spec.adapters, card)
        self._chunks.go_on()
        return None

    def begin_at(self, record: SessionRecord, opened: api.Opened, words: PromptVersion | None) -> None:
        """`open` for one whose world is made again up to a moment of another session's. `record`: from there on."""
        self._chronicle.open(self.spec, opened)
        self.restore(record, opened.card)
        self._prompting.ask_for(words)

    def restore(self, record: SessionRecord, card: api.CardInfo) -> None:
        """`open` for a session whose world the engine has restored: it stands still until somebody is connected."""
        chunks, self._futures.weights, self._paused = self._chunks, record.weights, record.paused
        chunks.open(card, self.spec.votes)
        chunks.epoch, chunks.next = record.epoch, record.chunk
        self.prompts.restore(record.prompts)
        self.adapters.restore(record.adapters)
        noise = record.branch if record.noise < 0 else record.noise
        now = Future(record.world or record.name, record.branch, record.epoch, record.chunk, noise)
        self._futures.resumed(now, record.branches, record.epochs)
        self._chronicle.go_on(record.journaled, record.shown, card)
        self._chronicle.branch = record.branch
        self._move(Cause.RESTORED)

    def suspended(self, shown: bool = True) -> SessionRecord:
        """What `restore` needs besides the world; `shown` False: but for what can be rated, which the journal tells."""
        names = self.spec.name, self._opened().name, self._futures.weights
        at, paused, number = (self.spec.seed, self.epoch, self.next_chunk), self._paused, self._chronicle.number
        world, noises = self._futures.recorded()
        kept = self.prompts.record(), world
        ratable = self._chronicle.ratable if shown else ()
        apart_s = self._futures.seconds if self.turns.beside.choice else -1.0
        return SessionRecord(*names, *at, paused, number, *kept, *noises, self.adapters.now, ratable, apart_s)

    def let_go(self) -> None:
        """It was suspended: the engine frees its slot, the journal stays open for whoever restores it, and so does a
        choice between futures."""
        self.turns.beside.leave()
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
        self.helm.steer(())
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
        return self.helm.inbox()

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
        self.helm.flush()  # taps at a still picture steer nothing
        self.turns.tell_worlds(api.Resume)
        reply(messages.Accepted(id=message.id))
        self._inflight.expect(PendingAck(message.id, reply))

    def reset(self, message: messages.ResetWorld, participant: str, reply: Reply) -> None:
        reply(messages.Accepted(id=message.id))
        self.start_anew(message.seed, participant)
        self._inflight.expect(PendingAck(message.id, reply))

    def seek(self, message: messages.Seek, reply: Reply) -> None:
        """Of a replay."""
        if why := self.replay_from(message.chunk):
            reply(messages.Problem(code="no_moment", detail=why, id=message.id))
            return
        reply(messages.Accepted(id=message.id))
        self._inflight.expect(PendingAck(message.id, reply))

    def start_anew(self, seed: int | None, participant: str, first_frames: api.FirstFrames | None = None) -> int:
        """A new epoch: running work is void, its frames are never shown, the prompt stays. Returns its number.

        `seed` None = one that this session has not had.
        """
        self.turns.stand_alone(participant)
        self._chunks.epoch = self._futures.start_anew()
        seed = self.spec.seed_of(self.epoch) if seed is None else seed
        self.prompts.settle()
        self.helm.flush()
        self._door.post(api.Supersede(self.world, self.epoch, True, seed, first_frames))
        self.record(events.EpochStarted(self.epoch, seed, participant, first_frames))
        self._counters.resets += 1
        self._audience.tell(messages.StateChanged(state=self.state, epoch=self.epoch))
        return self.epoch

    def _turned(self, epoch: int) -> None:
        """The world that plays is another one, in a new epoch."""
        self._chunks.turned(epoch)
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
                self._chunks.asked_for(event.chunk)
            case api.Frame():
                self._chunks.shown(event)
            case api.Rendered():
                self._audience.rendered(event, self._inflight.inputs(event.frame))
            case api.ChunkDone():
                self._chunks.done(event)
            case api.ChunkCancelled():
                self._chunks.cancelled(event)
            case api.PromptEncoded():
                self._prompting.encoded(event)
                self._chunks.go_on()
            case api.AdaptersReady():
                self.adapters.ready(event)
                self._chunks.go_on()
            case api.Fault():
                self._fault(event)
            case _:
                assert_never(event)

    def _fault(self, event: api.Fault) -> None:
        if event.of_chunk:
            self._chunks.failed()
        self._faults.tell(event)
        if event.ends:
            self.close(event.code)
        elif event.fatal:
            self._stand_still()
        else:
            self._chunks.go_on()

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
