"""Prompts on their way: asked by a participant, encoded by the engine, then the world's.

Prompt -> may it be? -> asked (journaled) -> engine -> encoded (journaled) -> everybody is told
"""

import asyncio
from collections.abc import Callable

from ...engine import api
from ..audience import Audience
from ..journal import events
from ..messages import Accepted, Problem, Prompt, Transition
from .ack import PendingAck, Reply
from .inflight import InflightInputs
from .prompts import PromptMemory, PromptVersion


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
        self._asides: dict[int, asyncio.Future[PromptVersion | api.Fault]] = {}

    def asked(self, message: Prompt, card: api.CardInfo, participant: str, reply: Reply) -> bool:
        """False when it is refused; the reason goes to who asked."""
        problem = self._memory.refuses(message, card)
        if problem is not None:
            reply(problem)
            return False
        reply(Accepted(id=message.id))
        frames = round(message.seconds * card.fps)
        self.ask(message.text, message.transition, frames, participant, PendingAck(message.id, reply))
        return True

    def ask(
        self, text: str, transition: Transition, frames: int, participant: str = "", ack: PendingAck | None = None
    ) -> None:
        """Ask the engine for the embedding of a new version, which it may give within the call."""
        version = self._memory.ask(text, transition, frames, ack)
        self._record(events.PromptAsked(participant, version.number, text, transition, version.frames))
        for world in self._worlds():
            self._door.post(api.EncodePrompt(session=world, version=version.number, text=text))

    async def aside(self, text: str, participant: str) -> PromptVersion | api.Fault:
        """Have a prompt encoded for a future that is to stand beside this world."""
        version = self._memory.aside(text)
        answer: asyncio.Future[PromptVersion | api.Fault] = asyncio.get_running_loop().create_future()
        self._asides[version.number] = answer
        self._record(events.PromptAsked(participant, version.number, text, Transition.CUT, 0))
        self._door.post(api.EncodePrompt(session=self._worlds()[0], version=version.number, text=text))
        return await answer

    def failed(self, event: api.Fault) -> bool:
        """A version cannot be encoded, if the fault is of one; whether who asked for it is told."""
        self._memory.failed(event.prompt_version)
        if (answer := self._asides.pop(event.prompt_version, None)) is not None:
            answer.set_result(event)
            return True
        ack = self._memory.take_ack(event.prompt_version)
        if ack is not None:
            ack.reply(Problem(code=event.code, detail=event.detail, id=ack.id))
        return ack is not None

    def encoded(self, event: api.PromptEncoded) -> None:
        if (answer := self._asides.pop(event.version, None)) is not None:
            aside = self._memory.encoded_aside(event.version, event.key, event.meaning)
            self._record(events.PromptReady(number=event.version, key=event.key))
            if aside is not None:
                answer.set_result(aside)
            return
        version = self._memory.encoded(event.version, event.key, event.meaning)
        ack = self._memory.take_ack(event.version)
        self._record(events.PromptReady(number=event.version, key=event.key))
        if ack is not None:
            self._inflight.expect(ack)
        if version is not None:
            self._audience.tell(version.changed())
