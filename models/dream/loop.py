"""The dream's chunk_rollout loop: one frame per chunk, as worlds of the road go (shared/road/chunk.py).

A frame starts from noise of (seed, branch, chunk): that of its picture, which each step takes away in part, and a few
numbers more, which move the recurrent tokens on. The carry holds the newest three clean pictures, what made the newest
and its recurrent tokens.
Legend: P picture tokens, C channels, K controls, L look, Z noise, R numbers of the recurrent tokens, H/W picture,
N tokens. Knows no torch and no slots.
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
from .card import CHANNELS, NOISE, PICTURE_HEIGHT, PICTURE_TOKENS, PICTURE_WIDTH, RECIPE, TOKENS


class Made(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a frame is made of, beside its past and its picture's noise."""

    controls_K: Latent
    look_L: Latent
    noise_Z: Latent


class DreamCarry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`history_3PC`: the newest clean picture first. `made`, `state_R`: what the newest was made of and its recurrent
    tokens, None for an opening."""

    history_3PC: Latent
    frames: int
    made: Made | None
    state_R: Latent | None


class DreamState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One chunk under way; after the last denoise step `x_PC` is the clean picture."""

    chunk: int
    levels: tuple[float, ...]
    carry: DreamCarry
    pending: bool
    made: Made
    step: int
    x_PC: Latent
    state_R: Latent | None
    frame_HWC: NDArray[np.uint8] | None


class DenoiseRow(msgspec.Struct, frozen=True):
    """Predict the clean picture in `x_PC`; with `commit` the newest frame's K and V are staged in the same pass.

    `past_R`: recurrent tokens of the newest picture; None: they are read off the pictures.
    """

    x_PC: Latent
    history_3PC: Latent
    past_R: Latent | None
    sigma: float
    made: Made
    commit: Made | None


DreamRow = DenoiseRow | DecodeRow


class Denoised(msgspec.Struct, frozen=True):
    x0_PC: Latent
    state_R: Latent


DreamResult = Denoised | Decoded


class DreamLoop:
    """Stateless; `openings` are the first pictures of each look."""

    def __init__(self, openings: Openings) -> None:
        self._openings = openings

    def init(self, ask: Ask[DreamCarry]) -> DreamState:
        look_L = mix_looks(ask.features)
        carry = self._opening(ask, look_L) if ask.carry is None else ask.carry
        size = PICTURE_TOKENS * CHANNELS
        noise = gaussian(NoiseKey(ask.seed, ask.branch, ask.chunk, 0), (size + NOISE,))
        controls_K = np.asarray(ask.conditions.controls, np.float32)
        return DreamState(
            chunk=ask.chunk,
            levels=RECIPE.levels(ask.steps),
            carry=carry,
            pending=is_pending(ask, carry.frames),
            made=Made(controls_K, look_L, noise[size:]),
            step=0,
            x_PC=noise[:size].reshape(PICTURE_TOKENS, CHANNELS),
            state_R=None,
            frame_HWC=None,
        )

    def next(self, state: DreamState) -> WorkPlan[DreamRow] | Done:
        if state.step < len(state.levels):
            fused = state.pending and state.step == 0
            row = DenoiseRow(
                state.x_PC,
                state.carry.history_3PC,
                state.carry.state_R,
                state.levels[state.step],
                state.made,
                state.carry.made if fused else None,
            )
            if fused:
                return WorkPlan(StepKind.COMMIT_DENOISE, (2, TOKENS, CHANNELS), row, Commit.PREVIOUS)
            return WorkPlan(StepKind.DENOISE, (1, TOKENS, CHANNELS), row)
        if state.frame_HWC is None:
            return WorkPlan(StepKind.DECODE, (1, PICTURE_HEIGHT, PICTURE_WIDTH), DecodeRow(state.x_PC))
        return Done()

    def advance(self, state: DreamState, result: DreamResult) -> DreamState:
        match result:
            case Denoised(x0_PC, state_R):
                step = state.step + 1
                x_PC = next_noisy(state.x_PC, x0_PC, state.levels, step)
                return msgspec.structs.replace(state, step=step, x_PC=x_PC, state_R=state_R)
            case Decoded(frame_HWC):
                return msgspec.structs.replace(state, frame_HWC=frame_HWC)
            case _:
                assert_never(result)

    def finalize(self, state: DreamState) -> Outcome[DreamCarry]:
        return outcome(state.chunk, state.frame_HWC, state.x_PC, self._carry(state))

    def early_carry(self, state: DreamState) -> DreamCarry:
        return self._carry(state)

    def rebase(self, state: DreamState, carry: DreamCarry) -> DreamState:
        return state  # pictures are made from latents alone

    def _carry(self, state: DreamState) -> DreamCarry:
        history_3PC = onto(state.carry.history_3PC, state.x_PC)
        return DreamCarry(history_3PC, state.carry.frames + 1, state.made, state.state_R)

    def _opening(self, ask: Ask[DreamCarry], look_L: Latent) -> DreamCarry:
        check_opening(ask)
        return DreamCarry(self._openings.pick(look_L, ask.seed), 0, None, None)
