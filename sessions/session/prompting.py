"""Prompts on their way: asked by a participant, encoded by the engine, then the world's.

Prompt -> may it be? -> asked (journaled) -> engine -> encoded (journaled) -> everybody is told
"""

from collections.abc import Callable

from ...engine import api
from ..audience import Audience
from ..journal import events
from ..messages import Accepted, Prompt, Transition
from .ack import PendingAck, Reply
from .inflight import InflightInputs
from .prompts import PromptMemory


class Prompting:
    """`world`: the name of the world that plays, as the engine knows it."""

    def __init__(
        self,
        memory: PromptMemory,
        door: api.EngineClient,
        record: Callable[[events.JournalEvent], None],
        inflight: InflightInputs,
        audience: Audience,
        world: Callable[[], str],
    ) -> None:
        self._memory, self._door, self._record = memory, door, record
        self._inflight, self._audience, self._world = inflight, audience, world

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
        self._door.post(api.EncodePrompt(session=self._world(), version=version.number, text=text))

    def encoded(self, event: api.PromptEncoded) -> None:
        version = self._memory.encoded(event.version, event.key, event.meaning)
        ack = self._memory.take_ack(event.version)
        self._record(events.PromptReady(number=event.version, key=event.key))
        if ack is not None:
            self._inflight.expect(ack)
        if version is not None:
            self._audience.tell(version.changed())
