"""The last denoise pass of a frame is skipped while it changes little: the row's own residual says so.

    residual   |x0 of the last pass - x0 of the pass before| / |x0 of the last pass|, of the newest frame that ran both
    skip       residual <= `below`, and fewer than `most` frames in a row: then the frame measures again

A frame that skips is the prediction of its pass before. With 3 and 4 steps its error follows the residual, with 2 it
does not. The idea is TeaCache's (Liu et al. 2024, arXiv 2411.19108: reuse while an accumulated relative L1 distance
stays small).
"""

from dataclasses import dataclass
from typing import ClassVar

import msgspec
import numpy as np

from ..contract.intercept import Carried, Intercept
from ..contract.loop import StepKind, WorkPlan
from ..shared.road.chunk import Latent
from .loop import Denoised, DriveCarry, DriveResult, DriveRow, DriveState

SKIP_BELOW = 0.08
"""Above every residual of the shipped weights (at most .070 with 2 steps, .035 with 3 and 4): under one look three
frames of four skip, while it fades none does, off by less than a third of what the recipe declares. A residual beyond
it is unlike all that was measured, and every pass runs. With other weights: `worldroom bench skip`.
"""


class SkipState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`before_NC`: x0 of the chunk's pass before, None between chunks. `residual` -1: not measured yet."""

    residual: float
    skipped: int
    before_NC: Latent | None


class SkipCarry(Carried[DriveCarry, SkipState], frozen=True, forbid_unknown_fields=True):
    """What a drive that skips hands from chunk to chunk."""


@dataclass(frozen=True, slots=True)
class SkipLastPass:
    """See the module docstring."""

    below: float
    most: int = 3
    name: ClassVar[str] = "skip of the last pass"
    carried: ClassVar[type[Carried[DriveCarry, SkipState]]] = SkipCarry

    def start(self) -> SkipState:
        return SkipState(residual=-1.0, skipped=0, before_NC=None)

    def decide(
        self, own: SkipState, state: DriveState, plan: WorkPlan[DriveRow]
    ) -> WorkPlan[DriveRow] | Intercept[DriveResult]:
        last = plan.kind is StepKind.DENOISE and state.step == len(state.levels) - 1
        if last and own.before_NC is not None and 0 <= own.residual <= self.below and own.skipped < self.most:
            return Intercept(Denoised(own.before_NC))
        return plan

    def note(self, own: SkipState, state: DriveState, result: DriveResult, answered: bool) -> SkipState:
        if not isinstance(result, Denoised):
            return own
        if state.step < len(state.levels) - 1:
            return msgspec.structs.replace(own, before_NC=result.x0_NC)
        if answered:
            return SkipState(own.residual, own.skipped + 1, None)
        if own.before_NC is None:
            return own
        moved = float(np.linalg.norm(result.x0_NC - own.before_NC))
        return SkipState(moved / max(float(np.linalg.norm(result.x0_NC)), 1e-6), 0, None)
