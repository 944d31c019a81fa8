"""Prompts on their way: asked by a participant, encoded by the engine, then part of the session's prompt memory."""

from collections.abc import Callable

from ...engine import api
from ..journal import events
from ..messages import Transition
from .inflight import PendingAck
from .prompts import PromptMemory, PromptVersion

MOST_WAITING = 8


class Prompting:
    """The prompt memory of a session and the versions that wait for their embedding, each with who asked."""

    def __init__(self, session: str, door: api.EngineClient, record: Callable[[events.JournalEvent], None]) -> None:
        self.memory = PromptMemory()
        self._session = session
        self._door = door
        self._record = record
        self._steers: dict[int, PendingAck] = {}

    @property
    def full(self) -> bool:
        """As many prompts wait as may wait."""
        return self.memory.waiting >= MOST_WAITING

    @property
    def first_waits(self) -> bool:
        """The world has no prompt yet, but is about to get one."""
        return self.memory.number == 0 and self.memory.waiting > 0

    def ask(
        self,
        text: str,
        transition: Transition,
        frames: int,
        participant: str = "",
        steer: PendingAck | None = None,
    ) -> None:
        """Ask the engine for the embedding of a new version; `steer` is told when it takes effect.

        The engine may answer within the call.
        """
        version = self.memory.ask(text, transition, frames)
        if steer is not None:
            self._steers[version.number] = steer
        self._record(
            events.PromptAsked(
                participant=participant,
                number=version.number,
                text=text,
                transition=transition,
                frames=version.frames,
            )
        )
        self._door.post(api.EncodePrompt(session=self._session, version=version.number, text=text))

    def encoded(self, event: api.PromptEncoded) -> tuple[PromptVersion | None, PendingAck | None]:
        """The version that the world turns to (None: a newer one is there already) and who asked for it."""
        version = self.memory.encoded(event.version, event.key, event.meaning)
        self._record(events.PromptReady(number=event.version, key=event.key))
        return version, self._steers.pop(event.version, None)

    def failed(self, number: int) -> PendingAck | None:
        """The version never takes effect; who asked for it."""
        self.memory.failed(number)
        return self._steers.pop(number, None)
