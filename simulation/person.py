"""A person of a trace, at the engine's door: comes in or waits in line, does what the trace says, notes when it showed.

    act --> Begin of the next chunk carries it --> first frame whose receipt says so: that long it took

Answers `ChunkDue` at once, as a room's session does. Knows the engine by its messages alone.
"""

import asyncio
from dataclasses import dataclass, field

from ..engine import api
from ..engine.engine import Engine
from .trace import Act, Visit

PATIENT = (api.RefusalReason.NO_SLOT, api.RefusalReason.NO_MEMORY, api.RefusalReason.NO_COMPUTE)


@dataclass(slots=True)
class Wish:
    """An act that no frame has shown yet; `mark`: what a receipt must have reached."""

    at: float
    mark: int


@dataclass(slots=True)
class SimulatedPerson:
    """`seed` tells its worlds apart; `start`: the loop's time when the trace begins; other times are the trace's.

    The rest is what happened. `took`: seconds from act to frame; `lates`: time and lateness of each chunk; `entered`
    None: never let in.
    """

    engine: Engine
    visit: Visit
    card: str
    seed: int
    start: float
    entered: float | None = None
    left: float | None = None
    waited: float = 0.0
    refused: api.RefusalReason | None = None
    chunks: int = 0
    missed: int = 0
    cancelled: int = 0
    faults: int = 0
    took: dict[Act, list[float]] = field(default_factory=lambda: {Act.KEY: [], Act.PROMPT: [], Act.REDIRECT: []})
    lates: list[tuple[float, float]] = field(default_factory=list)
    _wishes: dict[Act, list[Wish]] = field(default_factory=lambda: {Act.KEY: [], Act.PROMPT: [], Act.REDIRECT: []})
    _due: api.ChunkDue | None = None
    _epoch: int = 0
    _keys: int = 0
    _asked: int = 0
    _version: int = 0
    _feature: str = ""

    @property
    def interactive(self) -> bool:
        return self.visit.latency_class is api.LatencyClass.INTERACTIVE

    async def stay(self) -> None:
        """The whole visit."""
        await self._until(self.visit.arrives)
        if not await self._come_in():
            return
        self._ask_for_prompt()
        for moment in self.visit.moments:
            await self._until(moment.at + self.waited)
            self._act(moment.act)
        await self._until(self.visit.leaves + self.waited)
        self.engine.post(api.Close(self.visit.session))
        self.left = self._now()

    def hear(self, event: api.Event) -> None:
        match event:
            case api.Frame():
                self._see(Act.KEY, event.input_seq)
                self._see(Act.PROMPT, event.prompt_version)
                self._see(Act.REDIRECT, event.epoch)
            case api.ChunkDue():
                self._due = event
                self._answer()
            case api.ChunkDone():
                self.chunks += 1
                self.missed += event.late
                self.lates.append((self._now(), event.late_us / 1e6))
            case api.ChunkCancelled():
                self.cancelled += 1
            case api.PromptEncoded():
                self._version, self._feature = event.version, event.key
                self._answer()
            case api.Fault():
                self.faults += 1

    async def _come_in(self) -> bool:
        visit, began = self.visit, self._now()
        line = visit.session if visit.patience else ""
        command = api.Open(visit.session, self.card, self.seed, visit.latency_class, line=line)
        while isinstance(answer := await self.engine.open(command, self.hear), api.Refused):
            waited = self._now() - began
            if answer.reason not in PATIENT or waited + answer.retry_after_s >= visit.patience:
                self.refused, self.waited = answer.reason, waited
                return False
            await asyncio.sleep(answer.retry_after_s)
        self.entered, self.waited = self._now(), self._now() - began
        return True

    def _act(self, act: Act) -> None:
        match act:
            case Act.KEY:
                self._keys += 1
                self._wish(act, self._keys)
            case Act.PROMPT:
                self._ask_for_prompt()
                self._wish(act, self._asked)
            case Act.REDIRECT:
                self._epoch += 1
                self._wish(act, self._epoch)
                self.engine.post(api.Supersede(self.visit.session, self._epoch))
            case Act.REST:
                self.engine.post(api.Pause(self.visit.session))
            case Act.WAKE:
                self.engine.post(api.Resume(self.visit.session))

    def _ask_for_prompt(self) -> None:
        """A text that nobody has asked for yet."""
        self._asked += 1
        text = f"prompt {self._asked} of {self.visit.session}"
        self.engine.post(api.EncodePrompt(self.visit.session, self._asked, text))

    def _answer(self) -> None:
        if self._due is None or not self._feature:
            return
        due, self._due = self._due, None
        share = (api.PromptShare(self._feature, 1.0),)
        conditions = api.Conditions(self._epoch, (), (0.0, 0.0), share, self._version, self._keys)
        self.engine.post(api.Begin(self.visit.session, due.chunk, conditions))

    def _wish(self, act: Act, mark: int) -> None:
        self._wishes[act].append(Wish(self._now(), mark))

    def _see(self, act: Act, mark: int) -> None:
        """A receipt says that everything up to `mark` is in this frame."""
        wishes = self._wishes[act]
        if wishes and wishes[0].mark <= mark:
            now = self._now()
            self.took[act] += [now - wish.at for wish in wishes if wish.mark <= mark]
            self._wishes[act] = [wish for wish in wishes if wish.mark > mark]

    async def _until(self, moment: float) -> None:
        await asyncio.sleep(max(0.0, moment - self._now()))

    def _now(self) -> float:
        return asyncio.get_running_loop().time() - self.start
