"""A session turns to another future: the world that plays stands still, the other is made, and it goes on in that one.

Also what becomes of futures that play side by side. What the engine refuses leaves the session where it was, in a new
epoch.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from ...engine import api
from ..audience import Audience
from ..journal import events
from ..messages import Accepted, Applied, Choose, Fork, Keep, Problem, Regenerate, Rewind
from .ack import PendingAck, Reply
from .beside import Beside
from .chronicle import Chronicle
from .futures import Future, Futures, Turn
from .inflight import InflightInputs
from .lane import Lane
from .prompt_versions import PromptVersion
from .prompting import Prompting
from .prompts import PromptMemory
from .recorded import RecordedFutures

log = logging.getLogger(__name__)

VERDICTS = {
    Keep.THIS: events.Verdict.CHOSEN,
    Keep.OTHER: events.Verdict.CHOSEN,
    Keep.TIE: events.Verdict.TIE,
    Keep.SKIP: events.Verdict.SKIP,
}
REGENERATE_MOST_S = 60.0


class Turns:
    """Rewinds, forks and choices of one session.

    `playing`: the card of a world that runs, else None; `seed_of(epoch)`: a seed that it has not had.
    `turned(epoch)`: its world is another one; `begin(chunk)`: which waits for the conditions of that chunk; `take`:
    events of worlds that are made; `fault`: tells and counts one; `go_on`: begins a chunk that waited for others.
    """

    def __init__(
        self,
        seed: int,
        futures: Futures,
        door: api.EngineClient,
        chronicle: Chronicle,
        prompting: Prompting,
        prompts: PromptMemory,
        inflight: InflightInputs,
        audience: Audience,
        playing: Callable[[], api.CardInfo | None],
        seed_of: Callable[[int], int],
        turned: Callable[[int], None],
        begin: Callable[[int], None],
        take: Callable[[api.Event], None],
        fault: Callable[[api.Fault], None],
        go_on: Callable[[], None],
    ) -> None:
        self._seed, self._futures, self._door, self._chronicle = seed, futures, door, chronicle
        self._prompting, self._prompts, self._inflight, self._audience = prompting, prompts, inflight, audience
        self._playing, self._seed_of = playing, seed_of
        self._turned, self._begin, self._take, self._fault = turned, begin, take, fault
        self._turning: asyncio.Task[None] | None = None
        given = door, chronicle, prompting, audience
        self.beside = Beside(futures, *given, take, lambda code: self.stand_alone(""), fault, go_on)

    @property
    def busy(self) -> bool:
        """The world is on its way to be another one, or several."""
        return self.beside.busy or self._turning is not None

    @property
    def worlds(self) -> tuple[str, ...]:
        """The world that plays and those beside it, as the engine knows them."""
        return (self._futures.world, *self.beside.worlds)

    def tell_worlds(self, command: type[api.Pause | api.Resume]) -> None:
        for world in self.worlds:
            self._door.post(command(session=world))

    def rewind(self, message: Rewind, participant: str, reply: Reply) -> None:
        """Another future of the moment `seconds` ago; the one that played so far stands still until one is chosen."""
        card = self._playing()
        chunks = 0 if card is None else max(1, round(message.seconds * card.fps / card.frames_per_chunk))
        self._back(chunks, participant, PendingAck(message.id, reply))

    def regenerate(self, message: Regenerate, participant: str, reply: Reply) -> None:
        card, chunks = self._playing(), self._futures.since_words()
        if card is not None:
            chunks = min(chunks, round(REGENERATE_MOST_S * card.fps / card.frames_per_chunk))
        self._back(chunks if card is not None else 0, participant, PendingAck(message.id, reply))

    def fork(self, message: Fork, participant: str, reply: Reply) -> None:
        card = self._playing() if self._turning is None else None
        self.beside.fork(message, card, participant, PendingAck(message.id, reply))

    def choose(self, message: Choose, participant: str, reply: Reply) -> None:
        """Keep one of the futures and journal the comparison."""
        ack = PendingAck(message.id, reply)
        if self.beside.lanes:
            self._choose_beside(message, participant, ack)
            return
        keep, compared, other, turn = message.keep, self._futures.compared(self._seed), self._futures.other, None
        if keep is Keep.OTHER and not self.busy:
            turn = self._futures.to_the_other()
        if compared is None or other is None or self.busy or (turn is None and keep is Keep.OTHER):
            ack.reply(Problem(code="no_choice", detail="there are no two futures to choose from", id=ack.id))
            return
        branches, chunk, context, seconds = compared
        chosen = other.branch if turn is not None else self._futures.now.branch
        if not other.judged:
            other.judged = True
            self._judged(participant, chunk, context, branches, chosen, keep, seconds)
        ack.reply(Accepted(id=ack.id))
        if turn is not None:
            self._turn(turn, False, participant, ack)
        else:
            self._futures.forget_other()
            self._audience.tell(self.beside.told())
            ack.reply(Applied(id=ack.id, chunk=self._futures.next_chunk))

    def stand_alone(self, participant: str) -> None:
        """The leading future goes on alone, unjudged: the world is about to be another one, or to end."""
        if self.beside.lanes:
            self._part(participant, Keep.SKIP, 0)

    async def show_again(self, shown: RecordedFutures, worlds: Sequence[bytes], apart_s: float) -> str:
        """Have the futures that an earlier server showed; nobody has chosen between them. `worlds`: of those that play
        beside. Why that cannot be, '' = it is so."""
        for version in (*shown.versions, *(lane.version for lane in shown.lanes)):
            if version is not None:
                self._prompts.know(version)
        self._futures.shown_before(shown.made, shown.still)
        self._futures.parted(apart_s)
        return await self.beside.again(shown, worlds) if shown.lanes else ""

    async def begin_elsewhere(self, card: api.CardInfo, words: PromptVersion | None) -> api.Refused | None:
        """The weights that made this world are here no more: it begins anew with those of now, under those words, and
        stands still. The refusal when it has no place."""
        future, early = self._futures.elsewhere(), deque[api.Event]()
        seed, take = self._seed_of(future.epoch), early.append
        opening = api.Open(future.world, card.name, seed, branch=future.noise)
        answer = await self._door.open(opening, lambda event: take(event))
        if isinstance(answer, api.Refused):
            return answer
        self._door.post(api.Pause(session=future.world))
        self._futures.weights = answer.weights
        made = answer.weights, answer.steps, answer.precision, answer.mode, answer.machine
        self._turned(future.epoch)
        self._chronicle.record(events.WeightsLoaded(*made))
        self._chronicle.record(events.EpochStarted(future.epoch, seed, ""))
        self._prompting.ask_for(words)
        take = self._take
        while early:  # asked for before there were words
            take(early.popleft())
        return None

    # ---- side by side ----------------------------------------------------------------------------------------------

    def _choose_beside(self, message: Choose, participant: str, ack: PendingAck) -> None:
        lanes, place = self.beside.lanes, message.place
        if place is None:
            place = 1 if message.keep is Keep.OTHER and len(lanes) == 1 else 0
        if place > len(lanes) or (message.keep is Keep.OTHER and place == 0):
            ack.reply(Problem(code="no_choice", detail=f"there are places 0 to {len(lanes)}", id=ack.id))
            return
        ack.reply(Accepted(id=ack.id))
        self._part(participant, message.keep, place)
        ack.reply(Applied(id=ack.id, chunk=self._futures.next_chunk))

    def _part(self, participant: str, keep: Keep, place: int) -> None:
        beside, futures = self.beside, self._futures
        branches, first = beside.records(self._seed), beside.first
        chosen, kept = branches[place].branch, beside.lanes[place - 1] if place else None
        shared = futures.shared(first)
        self._judged(participant, first, shared, branches, chosen, keep, futures.seconds)
        if kept is not None:
            for chunk in (futures.next_chunk, futures.next_chunk + 1):
                self._inflight.cancelled(futures.now.epoch, chunk, same_world=False)
        beside.end(kept)
        if kept is not None:
            self._go_on_in(kept)

    def _go_on_in(self, lane: Lane) -> None:
        future = lane.future
        self._futures.go_on_as(future, tuple(lane.made))
        self._chronicle.branch = future.branch
        for chunk, conditions in lane.taken.items():
            self._inflight.adopt(chunk, conditions)
        version = None if lane.version is None else self._prompts.turn_to(lane.version.number)
        if version is not None:
            self._audience.tell(version.changed())
        self._turned(future.epoch)
        self._prompting.ask_again()
        if lane.due is not None:
            self._begin(lane.due)

    def _judged(
        self,
        participant: str,
        chunk: int,
        context: str,
        branches: tuple[events.BranchRecord, ...],
        chosen: int,
        keep: Keep,
        seconds: float,
    ) -> None:
        weights, verdict = self._futures.weights, VERDICTS[keep]
        event = events.PreferenceChosen(participant, chunk, context, weights, branches, chosen, verdict, seconds)
        self._chronicle.record(event)

    # ---- one after the other ---------------------------------------------------------------------------------------

    def _back(self, chunks: int, participant: str, ack: PendingAck) -> None:
        """`chunks` 0: the world does not run."""
        turn = None
        if chunks and not self.busy:
            self.stand_alone(participant)
            turn = self._futures.back(chunks)
        if turn is None:
            detail = "this world cannot go back now, or not that far"
            ack.reply(Problem(code="no_rewind", detail=detail, id=ack.id))
            return
        ack.reply(Accepted(id=ack.id))
        self._turn(turn, True, participant, ack)

    def _turn(self, turn: Turn, keep: bool, participant: str, ack: PendingAck) -> None:
        future, before = turn.future, self._futures.other
        self._door.post(api.Pause(session=self._futures.world))
        left = self._futures.turn_to(turn, keep)
        self._turned(future.epoch)
        self._chronicle.branch = future.branch
        branch, noise = future.branch, future.foreign_noise
        turned = events.WorldTurned(future.epoch, future.first, branch, turn.base, participant, noise)
        self._chronicle.record(turned)
        self._audience.tell(self.beside.told())
        version = self._prompts.turn_to(turn.prompt_version)
        if version is not None:
            self._audience.tell(version.changed())
        self._inflight.expect(ack)
        self._turning = asyncio.get_running_loop().create_task(self._make(turn, keep, left, before))

    async def _make(self, turn: Turn, keep: bool, left: Future, before: Future | None) -> None:
        refused: api.Refused | None = None
        fault: api.Fault | None = None
        try:
            refused = await self._futures.take(turn, self._take)
        except Exception as problem:  # nobody awaits this task: the world would stand still for ever
            log.exception("session %s: another future of it could not be made", left.world)
            fault = api.Fault(left.world, "turn_failed", type(problem).__name__, fatal=False)
        self._turning = None
        if self._chronicle.ended:
            self._door.post(api.Close(session=turn.future.world))
        elif fault is not None:
            self._stay(turn, left, None if keep else before)
            self._fault(fault)
        elif refused is not None:
            self._stay(turn, left, None if keep else before)
            self._audience.tell(Problem(code="no_place", detail=refused.detail))
        else:
            for world in () if keep else (left, before):
                if world is not None:
                    self._door.post(api.Close(session=world.world))
            self._prompting.ask_again()

    def _stay(self, turn: Turn, left: Future, other: Future | None) -> None:
        """The other future cannot be had: the world goes on as it was, in a new epoch."""
        self._futures.back_to(left, other)
        self._chronicle.branch = left.branch
        epoch, chunk, noise = turn.future.epoch, self._futures.next_chunk, left.foreign_noise
        self._chronicle.record(events.WorldTurned(epoch, chunk, left.branch, left.epoch, "", noise))
        self._audience.tell(self.beside.told())
        self._prompting.ask_again()
        self._door.post(api.Resume(session=left.world))
