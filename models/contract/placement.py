"""Programs: the stages a card's work goes through, in order, and where each of them runs. Typed data on the card.

realtime    prompt_encode -> chunk_rollout -> decode -> encode        encode is the engine's, for every card

device  [ denoise n ][ denoise n+1 ][ denoise n+2 ]      a decode that runs beside the device meets the next chunk's
beside               [ decode n    ][ decode n+1  ]      denoise (others', and its own world's where that would else
                                                         be late); what it computes is the same bits either way
"""

from dataclasses import dataclass
from enum import StrEnum

from .loop import StepKind


class Placement(StrEnum):
    """DEVICE: the one thread that owns the slab. BESIDE: a thread of its own, for steps that touch nothing but their
    row. ENCODERS: the threads that make packets of frames."""

    DEVICE = "device"
    BESIDE = "beside"
    ENCODERS = "encoders"


@dataclass(frozen=True, slots=True)
class ProgramStage:
    """`steps`: the step kinds it is made of; none for what is no step of a loop."""

    name: str
    where: Placement
    steps: tuple[StepKind, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """See the module docstring."""

    name: str
    stages: tuple[ProgramStage, ...]

    def where(self, kind: StepKind) -> Placement:
        """A kind that no stage names (cache_io) belongs to the device."""
        return next((stage.where for stage in self.stages if kind in stage.steps), Placement.DEVICE)


def realtime(decode: Placement = Placement.DEVICE) -> Program:
    """What a session goes through."""
    rollout = (StepKind.ENCODE, StepKind.RECACHE, StepKind.DENOISE, StepKind.COMMIT, StepKind.COMMIT_DENOISE)
    return Program(
        "realtime",
        (
            ProgramStage("prompt_encode", Placement.DEVICE, (StepKind.PROMPT_ENCODE,)),
            ProgramStage("chunk_rollout", Placement.DEVICE, rollout),
            ProgramStage("decode", decode, (StepKind.DECODE,)),
            ProgramStage("encode", Placement.ENCODERS),
        ),
    )


REALTIME = realtime()
