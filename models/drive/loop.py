"""The drive's chunk_rollout loop: one frame per chunk, as worlds of the road go (shared/road/chunk.py).

The carry holds the last three clean latents and what conditioned the newest; the innovations of a frame are drawn
from (seed, branch, chunk).
Legend: N tokens, C channels, K controls, L look, I innovations, H/W picture. Knows no torch and no slots.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...kernels.philox import NoiseKey, gaussian
from ..contract.loop import Ask, Commit, Done, Outcome, StepKind, WorkPlan
from ..shared.road.chunk import Decoded, DecodeRow, Latent, check_opening, is_pending, next_noisy, onto, outcome
from ..shared.road.initial_latents import Openings
from ..shared.road.look import mix_looks
from . import innovations
from .card import PICTURE_HEIGHT, PICTURE_WIDTH, RECIPE, TOKENS
from .innovations import InnovationState
from .memory import CHANNELS, PICTURE_TOKENS


class Cond(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What conditions one frame."""

    controls_K: Latent
    look_L: Latent
    innovations_I: Latent


class DriveCarry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`history_3NC`: the newest clean latent first. `cond`: what the newest was made under, None for an opening."""

    history_3NC: Latent
    frames: int
    innovation: InnovationState
    cond: Cond | None


class DriveState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One chunk under way; after the last denoise step `x_NC` is the clean frame."""

    chunk: int
    levels: tuple[float, ...]
    carry: DriveCarry
    pending: bool
    cond: Cond
    innovation: InnovationState
    step: int
    x_NC: Latent
    frame_HWC: NDArray[np.uint8] | None


class DenoiseRow(msgspec.Struct, frozen=True):
    """Predict the clean frame in `x_NC`; with `commit` the newest frame's K and V are staged in the same pass."""

    x_NC: Latent
    history_3NC: Latent
    sigma: float
    cond: Cond
    commit: Cond | None


DriveRow = DenoiseRow | DecodeRow


class Denoised(msgspec.Struct, frozen=True):
    x0_NC: Latent


DriveResult = Denoised | Decoded


class DriveLoop:
    """Stateless; `openings` are the first latents of each look."""

    def __init__(self, openings: Openings) -> None:
        self._openings = openings

    def init(self, ask: Ask[DriveCarry]) -> DriveState:
        levels = RECIPE.levels(ask.steps)
        look_L = mix_looks(ask.features)
        carry = self._opening(ask, look_L) if ask.carry is None else ask.carry
        drawn_I, innovation = innovations.draw(ask.seed, ask.branch, ask.chunk, carry.innovation)
        return DriveState(
            chunk=ask.chunk,
            levels=levels,
            carry=carry,
            pending=is_pending(ask, carry.frames),
            cond=Cond(np.asarray(ask.conditions.controls, np.float32), look_L, drawn_I),
            innovation=innovation,
            step=0,
            x_NC=_noise(NoiseKey(ask.seed, ask.branch, ask.chunk, 0), levels),
            frame_HWC=None,
        )

    def next(self, state: DriveState) -> WorkPlan[DriveRow] | Done:
        if state.step < len(state.levels):
            fused = state.pending and state.step == 0
            row = DenoiseRow(
                state.x_NC,
                state.carry.history_3NC,
                state.levels[state.step],
                state.cond,
                state.carry.cond if fused else None,
            )
            if fused:
                return WorkPlan(StepKind.COMMIT_DENOISE, (2, TOKENS, CHANNELS), row, Commit.PREVIOUS)
            return WorkPlan(StepKind.DENOISE, (1, TOKENS, CHANNELS), row)
        if state.frame_HWC is None:
            return WorkPlan(StepKind.DECODE, (1, PICTURE_HEIGHT, PICTURE_WIDTH), DecodeRow(state.x_NC[:PICTURE_TOKENS]))
        return Done()

    def advance(self, state: DriveState, result: DriveResult) -> DriveState:
        match result:
            case Denoised(x0_NC):
                step = state.step + 1
                x_NC = next_noisy(state.x_NC, x0_NC, state.levels, step)
                return msgspec.structs.replace(state, step=step, x_NC=x_NC)
            case Decoded(frame_HWC):
                return msgspec.structs.replace(state, frame_HWC=frame_HWC)
            case _:
                assert_never(result)

    def finalize(self, state: DriveState) -> Outcome[DriveCarry]:
        return outcome(state.chunk, state.frame_HWC, state.x_NC, self._carry(state))

    def early_carry(self, state: DriveState) -> DriveCarry:
        return self._carry(state)

    def rebase(self, state: DriveState, carry: DriveCarry) -> DriveState:
        return state  # pictures are made from latents alone

    def _carry(self, state: DriveState) -> DriveCarry:
        history_3NC = onto(state.carry.history_3NC, state.x_NC)
        return DriveCarry(history_3NC, state.carry.frames + 1, state.innovation, state.cond)

    def _opening(self, ask: Ask[DriveCarry], look_L: Latent) -> DriveCarry:
        check_opening(ask)
        history_3NC = self._openings.pick(look_L, ask.seed)
        return DriveCarry(history_3NC, 0, innovations.start(ask.seed, ask.branch), None)


def _noise(key: NoiseKey, levels: tuple[float, ...]) -> Latent:
    """What the first step starts from. At level 1 noise is not seen, so where no other step follows none is drawn."""
    if levels == (1.0,):
        return np.zeros((TOKENS, CHANNELS), np.float32)
    return gaussian(key, (TOKENS, CHANNELS))
