"""Rooms made of an earlier session: planned by who asks, opened by the first who joins.

    plan(session, moment)        -> its journal is read -> a name      join(name) -> its world goes on from there
    plan_replay(session, moment) -> its journal is read -> a name      join(name) -> it is shown again from there

The earlier session is only read. Knows neither seats nor who may ask.
"""

import random
from collections import OrderedDict
from dataclasses import dataclass

from ...engine import api
from ..journal import events
from ..journal.history import History
from ..journal.replay import REDACTED
from ..journal.script import EpochScript, MadeBy, ReplayError, Script, read_session
from ..session.adapters import AdaptersRecord
from ..session.prompt_versions import PromptsRecord, PromptVersion
from ..session.recorded import words_of
from ..session.spec import SessionRecord
from .names import fresh_room
from .playback import ReplayPlan
from .remade import REMADE_MOST

PLANNED_MOST = 16
"""Plans that nobody has joined; the oldest is forgotten."""
OPENING = 1
"""Number of the entry that says how a session was opened."""


class NoMoment(ReplayError):
    """The session has no such chunk, or nobody can go on from it."""


@dataclass(frozen=True, slots=True)
class PastWorld:
    """What a room begins with. `words`: its first prompt, None = the world had none."""

    script: Script
    origin: events.Origin
    words: PromptVersion | None
    adapters: AdaptersRecord

    @property
    def session(self) -> str:
        return self.origin.session

    @property
    def card(self) -> str:
        return self.script.opened.card

    @property
    def made(self) -> MadeBy:
        return self.script.made(self.script.of(self.origin.epoch))

    def written_down(self, engine: api.SuspendableEngine, world: str) -> bytes:
        """For `restore`, under that name."""
        script, origin = self.script, self.origin
        opening = script.opening(origin.epoch, world, api.LatencyClass.INTERACTIVE)
        history = script.history(origin.epoch, world, origin.chunk)
        progress = api.Progress(epoch=origin.epoch, chunk=origin.chunk, paused=True)
        return script.written_down(engine, opening, history, progress)

    def record(self, name: str, weights: str) -> SessionRecord:
        """Of a session of that name, when its opening is journaled."""
        origin, noise = self.origin, self.script.noise(self.origin.epoch)
        at = self.script.root(origin.epoch).seed, origin.epoch, origin.chunk
        prompts, branches = PromptsRecord((), {}, 0), (0, noise or -1, noise, origin.epoch)
        return SessionRecord(name, self.card, weights, *at, False, OPENING, prompts, name, *branches, self.adapters)


class PastRooms:
    """See the module docstring. `source` draws names."""

    def __init__(self, engine: api.SuspendableEngine, history: History, source: random.Random) -> None:
        self.engine, self._history, self._source = engine, history, source
        self._planned: OrderedDict[str, PastWorld | ReplayPlan] = OrderedDict()

    async def plan(self, session: str, chunk: int | None = None, epoch: int | None = None) -> str:
        """A room in which the world of a session goes on from `chunk` (None = its end) of an epoch; None = the last one
        that has that chunk. Raises `SCRIPT_FAULTS`."""
        return self._plan(past_world(await read_session(self._history, session), session, chunk, epoch))

    async def plan_replay(
        self, session: str, chunk: int | None = None, epoch: int | None = None, words: str = ""
    ) -> str:
        """A room in which a session is shown again from `chunk` (None = its beginning) of an epoch on; None = the last
        one that has that chunk. `words`: in place of all it had, a counterfactual. Each time that the room opens, until
        it is forgotten. Raises `SCRIPT_FAULTS`."""
        plan = replay_plan(await read_session(self._history, session), session, chunk, epoch, words)
        most = next((info.prompt_chars for info in self.engine.cards() if info.name == plan.card), len(words))
        if len(words) > most:
            raise NoMoment(f"its world takes {most} characters, these are {len(words)}")
        return self._plan(plan)

    def planned(self, room: str) -> PastWorld | ReplayPlan | None:
        return self._planned.get(room)

    def opened(self, room: str) -> None:
        """Somebody has joined it: from now on it is a room like any other."""
        self._planned.pop(room, None)

    def forget(self, session: str) -> None:
        """It is deleted: nobody begins anything with it any more."""
        for room in [room for room, what in self._planned.items() if what.session == session]:
            del self._planned[room]

    def _plan(self, what: PastWorld | ReplayPlan) -> str:
        cards = [info.name for info in self.engine.cards()]
        if cards and what.card not in cards:
            raise NoMoment(f"its world is '{what.card}', and this server has {', '.join(cards)}")
        room = fresh_room(self._source)
        self._planned[room] = what
        while len(self._planned) > PLANNED_MOST:
            self._planned.popitem(last=False)
        return room


def past_world(script: Script, session: str, chunk: int | None, epoch: int | None) -> PastWorld:
    """Raises `NoMoment`."""
    if chunk is None:
        epoch = script.playing if epoch is None else epoch
        chunk = max((_end(each) for each in script.epochs if each.epoch == epoch), default=0)
    having = [each.epoch for each in script.epochs if each.chunks and each.chunks[0].chunk < chunk <= _end(each)]
    if not having or epoch not in (None, *having):
        ends = max(map(_end, script.epochs), default=0)
        raise NoMoment(f"nobody can go on from chunk {chunk} of it: there are 1 to {ends}")
    origin = events.Origin(session, having[-1] if epoch is None else epoch, chunk)
    before = script.of(origin.epoch).chunks
    conditions = next(each.conditions for each in reversed(before) if each.chunk < chunk)
    _check_remade(script.history(origin.epoch, "", chunk))
    shares = conditions.adapters
    adapters = AdaptersRecord(1, script.stacks.get(shares, ()), shares) if shares else AdaptersRecord()
    return PastWorld(script, origin, _words(script, conditions.prompt_version), adapters)


def replay_plan(script: Script, session: str, chunk: int | None, epoch: int | None, words: str = "") -> ReplayPlan:
    """Of what the weights made that it ended with. Raises `NoMoment`."""
    made = [script.made(each) for each in script.epochs if each.chunks]
    if not made:
        raise NoMoment("nothing of it was made")
    epochs = [each for each in script.epochs if script.made(each).same_as(made[-1])]
    steps = tuple((each, recorded) for each in epochs for recorded in each.chunks)
    first = 0
    if chunk is not None:
        at = [
            place
            for place, (each, recorded) in enumerate(steps)
            if recorded.chunk == chunk and epoch in (None, each.epoch)
        ]
        if not at:
            raise NoMoment(f"chunk {chunk} of it cannot be shown again")
        first = at[-1]
    begins, recorded = steps[first]
    _check_remade(script.history(begins.epoch, "", recorded.chunk))
    keys = {share.key for _, each in steps for share in each.conditions.prompts}
    if not all(key in script.embeddings or not script.texts.get(key, REDACTED).startswith(REDACTED) for key in keys):
        raise NoMoment("its words were taken out, and nothing that stands for them was kept")
    return ReplayPlan(session, script, made[-1], steps, first, words)


def _check_remade(history: tuple[api.HistoryStep, ...]) -> None:
    made = sum(isinstance(step, api.Begin) for step in history)
    if made > REMADE_MOST:
        raise NoMoment(f"{made} chunks would have to be made again, and {REMADE_MOST} is the most")


def _end(epoch: EpochScript) -> int:
    """Behind its last chunk."""
    return epoch.chunks[-1].chunk + 1 if epoch.chunks else 0


def _words(script: Script, number: int) -> PromptVersion | None:
    words = words_of(script, number)
    if words is not None and any(text.startswith(REDACTED) for text in (words.text, *(p.text for p in words.parts))):
        raise NoMoment("its words were taken out, so that nobody can go on under them")
    return words
