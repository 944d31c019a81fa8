"""What a session is opened with. Pure data."""

from dataclasses import dataclass

from ..engine.api import LatencyClass


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
