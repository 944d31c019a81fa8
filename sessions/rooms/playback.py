"""A session of the past played again, live: it takes an engine's place, so that the room around it is like any other.

    Session -- Begin(n) -->   Playback -- Begin(the n-th recorded chunk, its conditions) -->  engine
            <-- Frame(n) ---           <-- Frame ---------------------------------------

Chunks are numbered in the order in which epochs and futures are played, one after the other. Where the next chunk is of
another world, that one is made again, unseen; so it is where somebody seeks. What is made is compared with what was
recorded, which is only read; under other words there is nothing to compare.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from ...clock import Clock
from ...engine import api
from ..journal import events
from ..journal.replay import ENCODED_KEPT
from ..journal.script import CommittedChunk, EpochScript, MadeBy, Script
from .remade import REMADE_MOST

log = logging.getLogger(__name__)

AGAIN_S = 0.25
AGAIN_MOST = 40
"""The world that is left gives its place back at its next boundary; until then there may be none."""
LAST_LOOK_S = 1.0
"""How long the last picture stays."""


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """`steps`: what is played, in order, all of it by the weights `made`; from the one numbered `first` on. `words`: in
    place of those it had, '' = under its own.
    """

    session: str
    script: Script
    made: MadeBy
    steps: tuple[tuple[EpochScript, CommittedChunk], ...]
    first: int
    words: str = ""

    @property
    def card(self) -> str:
        return self.script.opened.card

    def asked(self, place: int) -> events.PromptAsked | None:
        """The prompt under which that chunk was made."""
        return self.script.asked.get(self.steps[place][1].conditions.prompt_version)


class Playback:
    """See the module docstring. `said(asked)` hears of every prompt that the world turns to, but for the first;
    `over(differ)` of the end: so many chunks were not what was recorded, None = they were not meant to be.
    """

    def __init__(self, engine: api.SuspendableEngine, plan: ReplayPlan, clock: Clock) -> None:
        self.said: Callable[[events.PromptAsked], None] = lambda asked: None
        self.over: Callable[[int | None], None] = lambda differ: None
        self._engine, self._plan, self._clock = engine, plan, clock
        self._places = {(epoch.epoch, each.chunk): place for place, (epoch, each) in enumerate(plan.steps)}
        self._name, self._world, self._worlds = "", "", 0
        self._hear: Callable[[api.Event], None] = lambda event: None
        self._playing = 0
        """The epoch that was recorded."""
        self._begun: int | None = None
        """The chunk that is being made."""
        self._waiting: tuple[int, str] | None = None
        """The chunk that waits for the embedding of that key."""
        self._paused, self._kbps = False, 0
        self._frame, self._pts = -1, 0
        self._held: deque[str] = deque(maxlen=ENCODED_KEPT)
        self._version, self._words = 0, plan.steps[plan.first][1].conditions.prompt_version
        self._numbers: dict[int, int] = {}
        """Of prompts as the session counts them, by chunk."""
        self._differ = 0
        self._other_key = ""
        """Of the other words, once the engine has them in this world."""
        self._task: asyncio.Task[None] | None = None
        self._end: asyncio.TimerHandle | None = None

    # ---- what the session sees of an engine ------------------------------------------------------------------------

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        self._name, self._hear = command.session, events
        answer = await self._make(self._plan.first)
        if isinstance(answer, api.Opened) and not self._plan.made.same_as(here := MadeBy.of(answer)):
            self._leave()
            detail = f"it was made with {self._plan.made}; this server has {here}"
            return api.Refused(self._name, api.RefusalReason.CONFLICT, detail, 0, 0.0)
        return msgspec.structs.replace(answer, session=self._name)

    def post(self, command: api.Command) -> None:
        match command:
            case api.Begin():
                self._numbers[command.chunk] = command.conditions.prompt_version
                self._begin(command.chunk)
            case api.EncodePrompt():
                self._hear(api.PromptEncoded(self._name, command.version, f"{self._name} {command.version}"))
            case api.Pause() | api.Resume():
                self._paused = isinstance(command, api.Pause)
                self._pass_on(command)
            case api.SetBitrate():
                self._kbps = command.kbps
                self._pass_on(command)
            case api.RequestKey():
                self._pass_on(command)
            case api.Close():
                self._hear = lambda event: None
                self._leave()
            case _:
                log.error("a replay was asked for %s, which nothing of it may", type(command).__name__)

    def seek(self, place: int) -> str:
        """Play on from that chunk; why not, '' = it will."""
        last = len(self._plan.steps) - 1
        if not 0 <= place <= last:
            return f"this replay has chunks 0 to {last}"
        if self._task is not None and not self._task.done():
            return "the replay is on its way to another moment"
        epoch, recorded = self._plan.steps[place]
        made = sum(isinstance(step, api.Begin) for step in self._plan.script.history(epoch.epoch, "", recorded.chunk))
        if made > REMADE_MOST:
            return f"{made} chunks would have to be made again, and {REMADE_MOST} is the most"
        if self._begun is not None:
            self._hear(api.ChunkCancelled(self._name, self._begun, 0))
        self._stop_waiting()
        self._task = asyncio.get_running_loop().create_task(self._go(place))
        return ""

    def cards(self) -> tuple[api.CardInfo, ...]:
        return self._engine.cards()

    def capacity(self) -> tuple[api.Capacity, ...]:
        return self._engine.capacity()

    def sessions(self) -> tuple[api.SessionInfo, ...]:
        return self._engine.sessions()

    def steps(self) -> tuple[api.BatchRan, ...]:
        return self._engine.steps()

    @property
    def ready(self) -> bool:
        return self._engine.ready

    async def close(self) -> None:
        """The engine is the server's."""

    # ---- worlds ----------------------------------------------------------------------------------------------------

    def _pass_on(self, command: api.Pause | api.Resume | api.SetBitrate | api.RequestKey) -> None:
        if self._world:
            self._engine.post(msgspec.structs.replace(command, session=self._world))

    def _stop_waiting(self) -> None:
        for waits in (self._task, self._end):
            if waits is not None:
                waits.cancel()
        self._task = self._end = None

    def _leave(self) -> None:
        self._stop_waiting()
        if self._world:
            self._engine.post(api.Close(session=self._world))
        self._world = ""

    async def _go(self, place: int) -> None:
        """Be in the world before that chunk; a fault tells why there is none."""
        why = ""
        try:
            for _ in range(AGAIN_MOST):
                answer = await self._make(place)
                if isinstance(answer, api.Opened):
                    return
                why = answer.detail
                await asyncio.sleep(AGAIN_S)
        except Exception as problem:  # nobody awaits this task: the picture would stand still for ever
            log.exception("a replay of session %s cannot go on", self._plan.session)
            why = type(problem).__name__
        self._hear(api.Fault(self._name, "no_place", why, fatal=True))

    async def _make(self, place: int) -> api.Opened | api.Refused:
        script, (epoch, recorded) = self._plan.script, self._plan.steps[place]
        self._worlds += 1
        left, world = self._world, f"{self._name}.{self._worlds}"
        near = self._earlier(left, world, epoch, recorded.chunk)
        self._world, self._begun, self._waiting, self._other_key = world, None, None, ""
        self._playing = epoch.epoch
        self._held.clear()
        if near is None:
            opening = script.opening(epoch.epoch, world, api.LatencyClass.INTERACTIVE)
            history = script.history(epoch.epoch, world, recorded.chunk)
            progress = api.Progress(epoch.epoch, recorded.chunk, True, self._kbps, self._frame + 1, self._pts)
            near = script.written_down(self._engine, opening, history, progress)
        if left:
            self._engine.post(api.Pause(session=left))
        answer = await self._engine.restore(near, self._take)
        if left:  # not before: the new one may be made of its parts
            self._engine.post(api.Close(session=left))
        if isinstance(answer, api.Opened) and not self._paused:
            self._engine.post(api.Resume(session=world))
        return answer

    def _earlier(self, left: str, world: str, epoch: EpochScript, chunk: int) -> bytes | None:
        """The world that plays as it was before that chunk, from its nearest checkpoint; None where it never was that,
        or was it under other words."""
        if not left or epoch.epoch != self._playing or self._plan.words:
            return None
        noise = self._plan.script.noise(epoch.epoch)
        return self._engine.fork(left, world, chunk, noise, epoch.epoch, left)

    # ---- chunks ----------------------------------------------------------------------------------------------------

    def _take(self, event: api.Event) -> None:
        if event.session != self._world:
            return
        match event:
            case api.ChunkDue():
                self._due(event)
            case api.PromptEncoded():
                self._encoded(event)
            case api.Frame():
                self._frame, self._pts = event.frame, event.pts
                self._hear(self._as_shown(event))
            case api.Rendered():
                self._hear(msgspec.structs.replace(event, session=self._name, frame=self._as_shown(event.frame)))
            case api.ChunkDone():
                place, self._begun = self._places[event.epoch, event.chunk], None
                self._differ += event.digest != self._plan.steps[place][1].digest
                self._hear(msgspec.structs.replace(event, session=self._name, epoch=0, chunk=place))
            case api.ChunkCancelled():
                place, self._begun = self._places[event.epoch, event.chunk], None
                self._hear(msgspec.structs.replace(event, session=self._name, epoch=0, chunk=place))
            case _:
                self._hear(msgspec.structs.replace(event, session=self._name))

    def _as_shown(self, frame: api.Frame) -> api.Frame:
        place = self._places.get((frame.epoch, frame.chunk), self._plan.first)
        number = self._numbers.get(place, 0)
        return msgspec.structs.replace(frame, session=self._name, epoch=0, chunk=place, prompt_version=number)

    def _due(self, due: api.ChunkDue) -> None:
        place = self._places.get((self._playing, due.chunk))
        if place is None:
            place = 1 + max(at for (epoch, _), at in self._places.items() if epoch == self._playing)
            if place == len(self._plan.steps):
                wait = max(0.0, due.deadline - self._clock.now()) + LAST_LOOK_S
                self._end = asyncio.get_running_loop().call_later(wait, self._over)
                return
            epoch, recorded = self._plan.steps[place]
            straight = epoch.turned is None and not epoch.fresh and epoch.after == self._playing
            if not straight or recorded.chunk != due.chunk:
                self._task = asyncio.get_running_loop().create_task(self._go(place))
                return
            self._playing = epoch.epoch
            self._engine.post(api.Supersede(self._world, epoch.epoch, True, epoch.seed, epoch.first_frames))
        number, asked = self._plan.steps[place][1].conditions.prompt_version, self._plan.asked(place)
        if number != self._words and asked is not None and not self._plan.words:
            self._words = number
            self.said(asked)
        self._hear(api.ChunkDue(self._name, place, due.deadline))

    def _over(self) -> None:
        self.over(None if self._plan.words else self._differ)

    def _begin(self, place: int) -> None:
        """Once the engine has the embeddings of its prompts."""
        epoch, recorded = self._plan.steps[place]
        if epoch.epoch != self._playing or not self._world:
            return  # it was due in a world that was left
        self._begun, conditions = place, recorded.conditions
        if self._plan.words:
            if not self._other_key:
                self._waiting, self._version = (place, ""), self._version + 1
                self._engine.post(api.EncodePrompt(self._world, self._version, self._plan.words))
                return
            mix = (api.PromptShare(self._other_key, 1.0),)
            conditions = msgspec.structs.replace(conditions, prompts=mix, recache=False)
        elif missing := [share.key for share in conditions.prompts if share.key not in self._held]:
            self._waiting = place, missing[0]
            self._hold(missing[0])
            return
        self._engine.post(api.Begin(self._world, recorded.chunk, conditions))

    def _hold(self, key: str) -> None:
        """The engine keeps the most recent ones."""
        script, embedding = self._plan.script, self._plan.script.embeddings.get(key)
        self._version += 1
        if embedding is None:
            self._engine.post(api.EncodePrompt(self._world, self._version, script.texts[key]))
        else:
            self._engine.post(api.HoldPrompt(self._world, self._version, key, embedding))

    def _encoded(self, event: api.PromptEncoded) -> None:
        if self._waiting is None or event.version != self._version:
            return
        place, key = self._waiting
        self._waiting = None
        if self._plan.words:
            self._other_key = event.key
        elif event.key != key:
            detail = "this server's text encoder differs: a prompt has another key here"
            self._hear(api.Fault(self._name, "other_words", detail, fatal=True))
            return
        self._held.append(event.key)
        self._begin(place)
