"""Prompts on their way: asked by a participant, encoded by the engine, then the world's.

Prompt -> may it be? -> asked (journaled) -> engine -> encoded (journaled) -> everybody is told
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...engine import api
from ..audience import Audience
from ..journal import events
from ..messages import Accepted, Problem, Prompt, PromptsPlanned, Transition
from .ack import PendingAck, Reply
from .inflight import InflightInputs
from .prompt_versions import AT_ONCE, PromptVersion, Wanted
from .prompts import PromptMemory


@dataclass(slots=True)
class _Aside:
    """A version for a future that is to stand beside this world, and who waits for it."""

    version: PromptVersion
    answer: "asyncio.Future[PromptVersion | api.Fault]"


class Prompting:
    """`worlds`: the names of the worlds that play, as the engine knows them, the leading one first."""

    def __init__(
        self,
        memory: PromptMemory,
        door: api.EngineClient,
        record: Callable[[events.JournalEvent], None],
        inflight: InflightInputs,
        audience: Audience,
        worlds: Callable[[], tuple[str, ...]],
    ) -> None:
        self._memory, self._door, self._record = memory, door, record
        self._inflight, self._audience, self._worlds = inflight, audience, worlds
        self._asides: dict[int, _Aside] = {}
        """By the number of each of their texts."""
        self._told = PromptsPlanned()

    def asked(self, message: Prompt, card: api.CardInfo, participant: str, reply: Reply) -> bool:
        """False when it is refused; the reason goes to who asked."""
        problem = self._memory.refuses(message, card)
        if problem is not None:
            reply(problem)
            return False
        reply(Accepted(id=message.id))
        over = message.over
        frames = round(message.seconds * card.fps) if over is None else over * card.frames_per_chunk
        wanted = Wanted(message.weight, message.others, message.at)
        self.ask(message.text, message.transition, frames, participant, PendingAck(message.id, reply), wanted)
        return True

    def ask(
        self,
        text: str,
        transition: Transition,
        frames: int,
        participant: str = "",
        ack: PendingAck | None = None,
        wanted: Wanted = AT_ONCE,
    ) -> None:
        """Ask the engine for the embeddings of a new version, which it may give within the call."""
        version = self._memory.ask(text, transition, frames, ack, wanted)
        self._tell_planned()
        self._encode(version, participant, self._worlds())

    def _tell_planned(self) -> None:
        """Everybody hears of what waits for its chunk, where that is not what they were told last."""
        planned = self._memory.planned()
        if planned != self._told:
            self._told = planned
            self._audience.tell(planned)

    def _encode(self, version: PromptVersion, participant: str, worlds: Sequence[str]) -> None:
        """Journal its texts and have them encoded, those that are mixed into it first."""
        for part in version.parts:
            self._record(events.PromptAsked(participant, part.number, part.text, Transition.CUT, 0))
        parts = tuple(events.MixedPart(part.number, part.weight) for part in version.parts)
        at = -1 if version.at is None else version.at
        how = version.transition, version.frames, version.weight, parts, at
        self._record(events.PromptAsked(participant, version.number, version.text, *how))
        for number, words in (*((part.number, part.text) for part in version.parts), (version.number, version.text)):
            for world in worlds:
                self._door.post(api.EncodePrompt(session=world, version=number, text=words))

    def ask_for(self, version: PromptVersion | None) -> None:
        """The words of another world, at once, for one that has none yet; None = it begins without."""
        if version is not None:
            self.ask(version.text, Transition.CUT, frames=0, wanted=version.wanted)

    def ask_again(self) -> None:
        """The world is another one: what the one before it was still to encode, this one has to."""
        for number, words in self._memory.unencoded():
            self._door.post(api.EncodePrompt(session=self._worlds()[0], version=number, text=words))

    def begin(self, chunk: int) -> None:
        """This chunk is about to begin: turn to what waits for it."""
        version = self._memory.due(chunk)
        if version is not None:
            self._turned(version, self._memory.take_ack(version.number))

    async def aside(self, text: str, wanted: Wanted, participant: str) -> PromptVersion | api.Fault:
        """Have a prompt encoded for a future that is to stand beside this world."""
        version = self._memory.aside(text, wanted)
        aside = _Aside(version, asyncio.get_running_loop().create_future())
        for number in (version.number, *(part.number for part in version.parts)):
            self._asides[number] = aside
        self._encode(version, participant, self._worlds()[:1])
        return await aside.answer

    def failed(self, event: api.Fault) -> bool:
        """A version cannot be encoded, if the fault is of one; whether who asked for it is told."""
        whole = self._memory.whole_of(event.prompt_version)
        self._memory.failed(event.prompt_version)
        if (aside := self._asides.pop(event.prompt_version, None)) is not None:
            self._asides = {number: each for number, each in self._asides.items() if each is not aside}
            aside.answer.set_result(event)
            return True
        self._tell_planned()
        ack = self._memory.take_ack(whole)
        if ack is not None:
            ack.reply(Problem(code=event.code, detail=event.detail, id=ack.id))
        return ack is not None

    def encoded(self, event: api.PromptEncoded) -> None:
        if (aside := self._asides.pop(event.version, None)) is not None:
            aside.version = aside.version.encoded(event.version, event.key, event.meaning)
            self._record(events.PromptReady(number=event.version, key=event.key))
            if aside.version.mix is not None:
                self._memory.know(aside.version)
                aside.answer.set_result(aside.version)
            return
        whole = self._memory.whole_of(event.version)
        version = self._memory.encoded(event.version, event.key, event.meaning)
        ack = None if self._memory.waits(whole) else self._memory.take_ack(whole)
        self._record(events.PromptReady(number=event.version, key=event.key))
        self._turned(version, ack)

    def _turned(self, version: PromptVersion | None, ack: PendingAck | None) -> None:
        if ack is not None:
            self._inflight.expect(ack)
        for late in self._memory.take_overtaken():
            late.reply(Problem(code="overtaken", detail="a later prompt took effect before its chunk", id=late.id))
        self._tell_planned()
        if version is not None:
            self._audience.tell(version.changed())
