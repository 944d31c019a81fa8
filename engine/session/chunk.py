"""The chunk in flight: what it was asked to be, where its time goes, and the shots it becomes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...models.contract.latents import Latents
from ...models.contract.loop import StepKind
from .. import api
from ..cancel import CancelScope
from ..device.dispatch import StepRun
from ..drive import DecodeOverlap
from ..output.publisher import RawFrame
from ..scheduling.costs import StepKey


@dataclass(slots=True)
class EngineChunk:
    """`deadline` is its first frame's playout time; to meet it, its last step has to end at `made_by` and its first one
    had to start at `latest_start`. `asked`: when its conditions were due. `generation`: of the world it belongs to.
    Work without a deadline has infinity. `keep`: its latents are wanted.
    """

    number: int
    conditions: api.Conditions
    scope: CancelScope
    begun: float
    deadline: float = math.inf
    made_by: float = math.inf
    latest_start: float = math.inf
    asked: float = math.inf
    generation: int = 0
    keep: bool = False
    overlap: DecodeOverlap = field(default_factory=DecodeOverlap)
    steps: list[StepKey] = field(default_factory=list)
    first_step: float = math.inf
    shares: list[float] = field(default_factory=list)
    """Device-seconds of each of its steps: of a batch its own part."""
    waited: float = 0.0
    company: float = 0.0
    """Seconds of its batches that were others' part of them."""

    def stepped(self, key: StepKey, ran: StepRun) -> None:
        self.steps.append(key)
        self.shares.append(ran.seconds)
        self.waited += ran.behind
        self.company += ran.company
        self.first_step = min(self.first_step, ran.started)

    def done(self, session: str, latents: Latents | None, late_us: int, late: bool) -> api.ChunkDone:
        """`latents` None: they are lost with its pictures."""
        digest = "" if latents is None else latents.digest
        kept = latents.packed() if self.keep and latents is not None else b""
        return api.ChunkDone(session, self.number, self.conditions.epoch, digest, late_us, self.timings(), late, kept)

    def timings(self) -> api.Timings:
        """Of the chunk alone: what the device did for others while its steps ran is waiting, too. A frame adds its own
        encode time.
        """
        decode = sum(share for key, share in zip(self.steps, self.shares, strict=True) if key.kind is StepKind.DECODE)
        return api.Timings(
            wait_us=round((self.first_step - self.begun + self.company) * 1e6),
            step_us=round((sum(self.shares) - decode) * 1e6),
            decode_us=round(decode * 1e6),
            encode_us=0,
        )

    def shots(
        self, frames: npt.NDArray[np.uint8], times: Iterable[float], took: float | None, preview: bool = False
    ) -> list[RawFrame]:
        """`took`: seconds since its conditions were due, the waiting for others left out; None of a preview."""
        conditions, timings = self.conditions, self.timings()
        pressed = conditions.pressed
        return [
            RawFrame(
                picture=picture,
                at=at,
                chunk=self.number,
                epoch=conditions.epoch,
                input_seq=conditions.input_seq,
                prompt_version=conditions.prompt_version,
                controls=pressed,
                begun=self.begun,
                timings=timings,
                took=took if index == 0 else None,
                preview=preview,
            )
            for index, (picture, at) in enumerate(zip(frames, times, strict=True))
        ]
