"""What a session is opened with, as the engine is asked for it and as the journal keeps it. Pure."""

from dataclasses import dataclass

from ...engine.api import LatencyClass, Open, Opened
from ..journal import events


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """What a session is opened with. `prompt` None = the card's first suggestion, if it has one."""

    name: str
    room: str
    card: str
    seed: int
    prompt: str | None = None
    steps: int | None = None
    latency_class: LatencyClass = LatencyClass.INTERACTIVE

    def ask(self) -> Open:
        """In line under the room's name."""
        return Open(
            session=self.name,
            card=self.card,
            seed=self.seed,
            latency_class=self.latency_class,
            steps=self.steps,
            line=self.room,
        )

    def opened(self, answer: Opened) -> events.SessionOpened:
        return events.SessionOpened(
            room=self.room,
            card=answer.card.name,
            version=answer.card.version,
            weights=answer.weights,
            steps=answer.steps,
            precision=answer.precision,
            seed=self.seed,
            branch=0,
            mode=answer.mode,
            contract=answer.contract,
        )
