"""The dream's chunk_rollout loop: one frame per chunk, the cache write of a frame fused with the next frame's start.

    chunk i:   [ commit i-1 + denoise at level 1 ]  [ denoise ]*  [ decode ]        Commit.PREVIOUS on the first step
    pending    carry.frames > ask.committed: frame i-1 is in the carry but its K and V are not committed yet

A frame starts from noise of (seed, branch, chunk): that of its picture, which each step takes away in part, and a few
numbers more, which all steps see as they are. The carry holds the newest three clean pictures and what made the newest.
Legend: P picture tokens, C channels, K controls, L look, Z noise, H/W picture, N tokens. Knows no torch and no slots.
"""

from __future__ import annotations

import hashlib
from typing import assert_never

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...kernels.philox import NoiseKey, gaussian
from ..contract.loop import Ask, Commit, Done, Outcome, StepKind, WorkPlan
from ..shared.road.initial_latents import Openings
from ..shared.road.look import mix_looks
from .card import CHANNELS, NOISE, PICTURE_HEIGHT, PICTURE_TOKENS, PICTURE_WIDTH, RECIPE, TOKENS

Latent = NDArray[np.float32]


class Made(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a frame is made of, beside its past and its picture's noise."""

    controls_K: Latent
    look_L: Latent
    noise_Z: Latent


class DreamCarry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`history_3PC`: the newest clean picture first. `made`: what the newest was made of, None for an opening."""

    history_3PC: Latent
    frames: int
    made: Made | None


class DreamState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One chunk under way; after the last denoise step `x_PC` is the clean picture."""

    chunk: int
    levels: tuple[float, ...]
    carry: DreamCarry
    pending: bool
    made: Made
    step: int
    x_PC: Latent
    frame_HWC: NDArray[np.uint8] | None


class DenoiseRow(msgspec.Struct, frozen=True):
    """Predict the clean picture in `x_PC`; with `commit` the newest frame's K and V are staged in the same pass."""

    x_PC: Latent
    history_3PC: Latent
    sigma: float
    made: Made
    commit: Made | None


class DecodeRow(msgspec.Struct, frozen=True):
    x_PC: Latent


DreamRow = DenoiseRow | DecodeRow


class Denoised(msgspec.Struct, frozen=True):
    x0_PC: Latent


class Decoded(msgspec.Struct, frozen=True):
    frame_HWC: NDArray[np.uint8]


DreamResult = Denoised | Decoded


class DreamLoop:
    """Stateless; `openings` are the first pictures of each look."""

    def __init__(self, openings: Openings) -> None:
        self._openings = openings

    def init(self, ask: Ask[DreamCarry]) -> DreamState:
        look_L = mix_looks(ask.features)
        carry = self._opening(ask, look_L) if ask.carry is None else ask.carry
        if not 0 <= carry.frames - ask.committed <= 1:
            raise ValueError(f"chunk {ask.chunk}: {carry.frames} frames made, {ask.committed} of them committed")
        size = PICTURE_TOKENS * CHANNELS
        noise = gaussian(NoiseKey(ask.seed, ask.branch, ask.chunk, 0), (size + NOISE,))
        controls_K = np.asarray(ask.conditions.controls, np.float32)
        return DreamState(
            chunk=ask.chunk,
            levels=RECIPE.levels(ask.steps),
            carry=carry,
            pending=carry.frames > ask.committed,
            made=Made(controls_K, look_L, noise[size:]),
            step=0,
            x_PC=noise[:size].reshape(PICTURE_TOKENS, CHANNELS),
            frame_HWC=None,
        )

    def next(self, state: DreamState) -> WorkPlan[DreamRow] | Done:
        if state.step < len(state.levels):
            fused = state.pending and state.step == 0
            row = DenoiseRow(
                state.x_PC,
                state.carry.history_3PC,
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
            case Denoised(x0_PC):
                return _denoised(state, x0_PC)
            case Decoded(frame_HWC):
                return msgspec.structs.replace(state, frame_HWC=frame_HWC)
            case _:
                assert_never(result)

    def finalize(self, state: DreamState) -> Outcome[DreamCarry]:
        if state.frame_HWC is None:
            raise ValueError(f"chunk {state.chunk} is not decoded yet (step {state.step} of {len(state.levels)})")
        digest = hashlib.sha256(state.x_PC.astype("<f4").tobytes()).hexdigest()
        return Outcome(state.frame_HWC[None], self._carry(state), digest)

    def early_carry(self, state: DreamState) -> DreamCarry:
        return self._carry(state)

    def rebase(self, state: DreamState, carry: DreamCarry) -> DreamState:
        return state  # pictures are made from latents alone

    def _carry(self, state: DreamState) -> DreamCarry:
        history_3PC = np.concatenate([state.x_PC[None], state.carry.history_3PC[:2]])
        return DreamCarry(history_3PC, state.carry.frames + 1, state.made)

    def _opening(self, ask: Ask[DreamCarry], look_L: Latent) -> DreamCarry:
        if ask.committed:
            raise ValueError(f"chunk {ask.chunk} starts a world but {ask.committed} chunks are committed")
        return DreamCarry(self._openings.pick(look_L, ask.seed), 0, None)


def _denoised(state: DreamState, x0_PC: Latent) -> DreamState:
    step = state.step + 1
    if step == len(state.levels):
        return msgspec.structs.replace(state, step=step, x_PC=x0_PC)
    level, lower = np.float32(state.levels[step - 1]), np.float32(state.levels[step])
    noise_PC = (state.x_PC - (1 - level) * x0_PC) / level
    return msgspec.structs.replace(state, step=step, x_PC=(1 - lower) * x0_PC + lower * noise_PC)
