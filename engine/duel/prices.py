"""What a card's steps cost in the contest, and how much of a batch is shared. Three cards, with their figures' origin.

Actual costs scatter around the price: ±5 %, and one step in fifty takes half as long again. The scatter of a step is
drawn from its name alone, so both sides pay the same for the same step.
"""

from dataclasses import dataclass, replace

from ...models.contract.loop import StepKind
from ..scheduling.urgency import draw


@dataclass(frozen=True, slots=True)
class StepPrice:
    """`seconds` of one row; every further row of a batch adds `further` of that."""

    kind: StepKind
    seconds: float
    further: float

    def batch(self, scatters: list[float]) -> float:
        """Seconds of a batch whose rows scatter by these factors."""
        return self.seconds * max(scatters) * (1 + self.further * (len(scatters) - 1))


@dataclass(frozen=True, slots=True)
class CardPrices:
    """One card: its chunk, step by step, and what a prompt costs. `origin` says where the figures come from."""

    name: str
    origin: str
    fps: int
    per_chunk: int
    steps: tuple[StepPrice, ...]
    prompt: StepPrice

    @property
    def chunk_seconds(self) -> float:
        return self.per_chunk / self.fps

    @property
    def chunk_price(self) -> float:
        return sum(step.seconds for step in self.steps)


_DRIVE_STEPS = (
    StepPrice(StepKind.COMMIT_DENOISE, 0.0166, 1.0),
    StepPrice(StepKind.DENOISE, 0.0127, 1.0),
    StepPrice(StepKind.DECODE, 0.0057, 1.0),
)
DRIVE = CardPrices(
    name="drive",
    origin="drive, fp32, 2 steps, one thread of a busy AMD EPYC, least CPU time of 35: 16.6, 12.7 and 5.7 ms; rows run "
    "one after another, so a batch shares nothing; the prompt's 2 ms are assumed",
    fps=24,
    per_chunk=1,
    steps=_DRIVE_STEPS,
    prompt=StepPrice(StepKind.PROMPT_ENCODE, 0.002, 1.0),
)

DRIVE_FAST = replace(
    DRIVE,
    name="drive-fast",
    origin="the steps of drive at 0.3 of their price, so that several sessions fit (assumed)",
    steps=tuple(replace(step, seconds=0.3 * step.seconds) for step in _DRIVE_STEPS),
)

_UNIT = 0.032
LONG_CHUNK = CardPrices(
    name="long-chunk",
    origin="a 4-step card of 12-frame chunks: denoise and commit 1 each, decode 1.5, prompt 0.5 (relative, assumed); "
    "1 = 32 ms; a further row of a pass adds 90 %, as a large transformer is bound by arithmetic",
    fps=16,
    per_chunk=12,
    steps=(
        *(StepPrice(StepKind.DENOISE, _UNIT, 0.9) for _ in range(4)),
        StepPrice(StepKind.COMMIT, _UNIT, 0.9),
        StepPrice(StepKind.DECODE, 1.5 * _UNIT, 1.0),
    ),
    prompt=StepPrice(StepKind.PROMPT_ENCODE, 0.5 * _UNIT, 1.0),
)


def scatter(session: int, chunk: int, step: int) -> float:
    """The factor on one step's price."""
    bits = draw(session, chunk * 64 + step)
    if bits % 50 == 0:
        return 1.5
    return 0.95 + 0.1 * (bits >> 32) / (1 << 32)
