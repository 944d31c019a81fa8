"""A world goes on in several futures at once, side by side in one picture, until one of them is kept.

    Fork -> prompts of its own encoded -> engine forks at a boundary -> every future plays -> Choose -> one goes on

The future that played goes on as it was and leads; the others are lanes, each an epoch and a world of its own in the
engine, so each of them replays. Knows no viewer.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence

from ...engine import api
from ..audience import Audience
from ..journal import events
from ..messages import Accepted, Applied, Fork, FutureView, Problem, SideBySide, Way
from .ack import PendingAck
from .chronicle import Chronicle
from .futures import Futures
from .inbox import keymap
from .lane import TAKEN_MAX, Lane, controls_of
from .prompt_versions import PromptVersion, Wanted
from .prompting import Prompting
from .recorded import RecordedFutures

log = logging.getLogger(__name__)

NO_FORK = "no_fork"
BEHIND_MOST = 2
"""Chunks that a future beside the leading one may be late: after a death each is made again by itself."""
WAITS_MOST_S = 60.0


class Beside:
    """`take` gets events of worlds that are made, `ended` the code of a fault that ends one of them. `fault`: tells and
    counts one; `go_on`: begins a chunk of the leading world that waited."""

    def __init__(
        self,
        futures: Futures,
        door: api.EngineClient,
        chronicle: Chronicle,
        prompting: Prompting,
        audience: Audience,
        take: Callable[[api.Event], None],
        ended: Callable[[str], None],
        fault: Callable[[api.Fault], None],
        go_on: Callable[[], None],
    ) -> None:
        self._futures, self._door, self._chronicle = futures, door, chronicle
        self._prompting, self._audience, self._take = prompting, audience, take
        self._ended, self._fault, self._go_on = ended, fault, go_on
        self.lanes: tuple[Lane, ...] = ()
        self.busy = False
        """A fork is on its way."""
        self.first = 0
        """The chunk before which they part."""
        self._waiting: tuple[Lane, ...] = ()
        self._conditions: OrderedDict[int, api.Conditions] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        self._given_up: asyncio.TimerHandle | None = None
        """When the leading one waits no longer."""

    @property
    def choice(self) -> bool:
        """Whether there are futures to choose between."""
        return bool(self.lanes) or self._futures.other is not None

    @property
    def worlds(self) -> tuple[str, ...]:
        """Names of the other worlds, as the engine knows them."""
        return tuple(lane.future.world for lane in self.lanes)

    def told(self) -> SideBySide:
        """What is shown now, for everybody and for who comes."""
        if not self.lanes:
            return SideBySide(chunk=self._futures.next_chunk, earlier=self._futures.other is not None)
        leads = FutureView(branch=self._futures.now.branch)
        return SideBySide(chunk=self.first, places=(leads, *(lane.view() for lane in self.lanes)))

    # ---- fork -------------------------------------------------------------------------------------------------------

    def fork(self, message: Fork, card: api.CardInfo | None, participant: str, ack: PendingAck) -> None:
        """`card` None: the world does not run."""
        problem = self._against(message, card)
        if problem is not None or card is None:
            ack.reply(Problem(code=NO_FORK, detail=problem or "the world does not run now", id=ack.id))
            return
        self.busy = True
        ack.reply(Accepted(id=ack.id))
        noise = self._futures.now.noise
        lanes = []
        for way in message.others:
            controls = controls_of(card, way.held)
            own = way.prompt is not None or controls is not None
            lanes.append(Lane(self._futures.beside(noise if own else None), held=way.held, controls=controls))
        self._task = asyncio.get_running_loop().create_task(self._fork(lanes, message.others, participant, ack))

    def _against(self, message: Fork, card: api.CardInfo | None) -> str | None:
        if card is None or self._futures.engine is None:
            return "the world does not run now, or this server's worlds only go forward"
        if self.busy or self.lanes:
            return "futures stand side by side already: choose first"
        known = keymap(card.controls)
        strange = [key for way in message.others for key in way.held if key not in known]
        if strange:
            return f"no control of this world is on {', '.join(strange)}"
        if any(way.others and (way.prompt is None or len(way.others) >= card.prompts_max) for way in message.others):
            return f"a mix has a prompt, and at most {card.prompts_max} texts in this world"
        texts = [text for way in message.others for text in (way.prompt or "", *(other.text for other in way.others))]
        long = any(len(text) > card.prompt_chars for text in texts)
        return f"this world takes {card.prompt_chars} characters" if long else None

    async def _fork(self, lanes: list[Lane], ways: tuple[Way, ...], participant: str, ack: PendingAck) -> None:
        problem: Problem | None = None
        try:
            for lane, way in zip(lanes, ways, strict=True):
                if way.prompt is not None and problem is None:
                    answer = await self._prompting.aside(way.prompt, Wanted(way.weight, way.others), participant)
                    if isinstance(answer, PromptVersion):
                        lane.version = answer
                    else:
                        problem = Problem(code=answer.code, detail=answer.detail, id=ack.id)
            if problem is None:
                problem = await self._part(lanes, participant, ack)
        except Exception as error:  # nobody awaits this task: who asked would wait for ever
            log.exception("session %s: it could not be forked", self._futures.world)
            self._fault(api.Fault(self._futures.world, NO_FORK, type(error).__name__, fatal=False))
            problem = Problem(code=NO_FORK, detail="the fork failed", id=ack.id)
        finally:
            self.busy, self._waiting = False, ()
        if problem is not None:
            ack.reply(problem)

    async def _part(self, lanes: list[Lane], participant: str, ack: PendingAck) -> Problem | None:
        """Fork in the engine; from the answer on every lane plays."""
        futures, engine = self._futures, self._futures.engine
        assert engine is not None, "there is an engine that forks"
        futures.forget_other()
        self._waiting = tuple(lanes)
        leads, base = futures.world, futures.now.epoch
        branches = tuple(api.Branch(each.future.world, each.future.noise, each.future.epoch) for each in lanes)
        answer = await engine.part(api.ForkSession(leads, branches), self._take)
        if isinstance(answer, api.Refused):
            return Problem(code="no_place", detail=answer.detail, id=ack.id)
        if (futures.world, futures.now.epoch) != (leads, base) or self._chronicle.ended:
            for lane in lanes:
                self._door.post(api.Close(session=lane.future.world))
            return Problem(code=NO_FORK, detail="the world is another one now", id=ack.id)
        self.first, self.lanes = answer.chunk, self._waiting
        futures.parted()
        for lane in self.lanes:
            lane.future.first = answer.chunk
            epoch, branch, noise = lane.future.epoch, lane.future.branch, lane.future.foreign_noise
            turned = epoch, answer.chunk, branch, base, participant, noise, True, lane.held, lane.number
            self._chronicle.record(events.WorldTurned(*turned), epoch, branch)
        self._door.post(api.ShowBeside(session=leads, others=self.worlds))
        self._audience.tell(self.told())
        ack.reply(Applied(id=ack.id, chunk=answer.chunk))
        for lane in self.lanes:
            self._begin(lane)
        return None

    async def again(self, shown: RecordedFutures, worlds: Sequence[bytes]) -> str:
        """The futures that an earlier server showed stand beside the one that leads again, which stands still. Why not,
        '' = they do."""
        futures, engine, problem = self._futures, self._futures.engine, ""
        assert engine is not None, "the world that leads was restored"
        self._waiting = shown.lanes
        for world in worlds:
            try:
                answer = await engine.restore(world, self._take, near=futures.world)
                problem = answer.detail if isinstance(answer, api.Refused) else ""
            except ValueError as error:
                problem = str(error)
            if problem:
                break
        self._waiting, self.first, self.lanes = (), shown.first, shown.lanes
        if not problem:
            self._conditions.update(sorted(shown.conditions.items())[-TAKEN_MAX:])
            self._door.post(api.ShowBeside(session=futures.world, others=self.worlds))
        return problem

    # ---- while they play --------------------------------------------------------------------------------------------

    def began(self, chunk: int, conditions: api.Conditions) -> None:
        """The leading future took these conditions for a chunk: so do those that wait for it."""
        self._conditions[chunk] = conditions
        while len(self._conditions) > TAKEN_MAX:
            self._conditions.popitem(last=False)
        for lane in self.lanes:
            self._begin(lane)

    def behind(self, chunk: int) -> bool:
        """Whether one of the others is so late that the leading one has to wait with this chunk; not for ever."""
        late = any(lane.begins < chunk - BEHIND_MOST for lane in self.lanes)
        if late and self._given_up is None:
            self._given_up = asyncio.get_running_loop().call_later(WAITS_MOST_S, self._ended, "late")
        elif not late:
            self._stop_waiting()
        return late

    def _stop_waiting(self) -> None:
        if self._given_up is not None:
            self._given_up.cancel()
        self._given_up = None

    def take(self, event: api.Event) -> bool:
        """An event of one of the other futures; False when it is of none of them."""
        lane = next((each for each in self.lanes or self._waiting if each.future.world == event.session), None)
        if lane is None:
            return False
        epoch, branch = lane.future.epoch, lane.future.branch
        match event:
            case api.ChunkDue() if event.chunk not in lane.taken:  # else the answer is on its way already
                lane.due = event.chunk
                self._begin(lane)
            case api.ChunkDone():
                lane.done(event.chunk, event.digest)
                self._chronicle.committed(event, branch)
            case api.ChunkCancelled():
                lane.taken.pop(event.chunk, None)
                self._chronicle.record(events.ChunkDropped(event.chunk, event.epoch), epoch, branch)
            case api.Fault() if event.of_chunk:
                lane.taken.clear()
                self._chronicle.record(events.Faulted(event.code, event.detail, event.fatal), epoch, branch)
                if event.fatal:
                    self._ended(event.code)
            case _:
                pass  # what it shows is part of the leading one's frames
        return True

    def _begin(self, lane: Lane) -> None:
        chunk = lane.due
        given = None if chunk is None or lane not in self.lanes else self._conditions.get(chunk)
        if chunk is None or given is None:
            return
        conditions = lane.steered(given)
        lane.begun(chunk, conditions)
        begun = events.ChunkBegun(chunk=chunk, conditions=conditions)
        self._chronicle.record(begun, lane.future.epoch, lane.future.branch)
        keep = self._chronicle.wants_latents(lane.future.epoch, chunk)
        self._door.post(api.Begin(lane.future.world, chunk, conditions, keep))
        self._go_on()

    # ---- the end ----------------------------------------------------------------------------------------------------

    def records(self, seed: int) -> tuple[events.BranchRecord, ...]:
        """All futures, in the order in which they are shown."""
        lanes = (lane.future.recorded(seed, tuple(lane.made)) for lane in self.lanes)
        return (self._futures.leading(self.first).recorded(seed), *lanes)

    def end(self, keep: Lane | None) -> None:
        """They part for good: that lane goes on, or (None) the one that leads. Call before the world is another one."""
        self._stop_waiting()
        lanes, self.lanes, leads = self.lanes, (), self._futures.world
        self._door.post(api.ShowBeside(session=leads if keep is None else keep.future.world))
        for lane in lanes:
            if lane is not keep:
                self._door.post(api.Close(session=lane.future.world))
        if keep is not None:
            self._door.post(api.Close(session=leads))
        self._audience.tell(self.told())
        if keep is None:
            self._go_on()

    def leave(self) -> None:
        """They are left as they are, unjudged, for whoever restores the session."""
        self._stop_waiting()
        lanes, self.lanes = self.lanes, ()
        for lane in lanes:
            self._door.post(api.Close(session=lane.future.world))
