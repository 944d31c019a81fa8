"""What the scheduler's layers look at: a step that waits for the device, and the rules. Pure data."""

from dataclasses import dataclass

from ..api import LatencyClass
from ..spec import Policy
from .costs import StepKey


@dataclass(frozen=True, slots=True)
class Ticket:
    """One step that waits for the device: its loop has said it is next, so it is ready.

    `latest_start` is when its chunk had to begin to meet `deadline`; `remaining` prices this step and what follows it.
    `then`: the step its chunk is expected to bring to the same thread afterwards.
    """

    number: int
    session: str
    key: StepKey
    latency_class: LatencyClass
    queued: float
    latest_start: float
    deadline: float
    remaining: float
    then: StepKey | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """What the scheduler is told once. `ageing`: background work older than this competes with everyone."""

    max_rows: int
    ageing: float
    seed: int
    policy: Policy = Policy.STEP
