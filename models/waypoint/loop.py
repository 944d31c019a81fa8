"""Waypoint's chunk_rollout loop: one latent frame a chunk, four Euler steps against a frozen cache, one commit pass.

    x = noise;  x += (next level - level) * velocity(x, level)   four times;  commit at level 0;  decode

Knows no torch functions, no slots and no time. Legend: T tokens of a frame, C channels, P prompt tokens, W their width.
"""

from __future__ import annotations

import hashlib
from typing import assert_never

import msgspec
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ...kernels.philox import NoiseKey, gaussian
from ..contract.loop import Ask, Commit, Done, Outcome, StepKind, WorkPlan
from .card import SIGMAS, WaypointSpec
from .controls import control_vector

Latent = NDArray[np.float32]


class LatentFault(RuntimeError):
    """A step returned numbers that are not finite: the chunk fails, the session goes on from its last commit."""


class WaypointCarry(msgspec.Struct, frozen=True):
    """`frames`: committed so far; every frame's place in time."""

    frames: int


class WaypointState(msgspec.Struct, frozen=True):
    chunk: int
    frame: int
    control_C: Latent
    prompt_PW: Tensor
    step: int
    x_TC: Latent
    committed: bool
    picture: NDArray[np.uint8] | None


class PassRow(msgspec.Struct, frozen=True):
    """One pass of frame number `frame` at a noise level; a commit pass has level 0."""

    x_TC: Latent
    sigma: float
    frame: int
    control_C: Latent
    prompt_PW: Tensor


class DecodeRow(msgspec.Struct, frozen=True):
    x_TC: Latent


WaypointRow = PassRow | DecodeRow


class Denoised(msgspec.Struct, frozen=True):
    velocity_TC: Latent


class Committed(msgspec.Struct, frozen=True):
    """The frame is staged; nothing comes back."""


class Decoded(msgspec.Struct, frozen=True):
    picture: NDArray[np.uint8]


WaypointResult = Denoised | Committed | Decoded


class WaypointLoop:
    """Stateless."""

    def __init__(self, spec: WaypointSpec) -> None:
        self._spec, self._levels = spec, (*SIGMAS, 0.0)

    def init(self, ask: Ask[WaypointCarry]) -> WaypointState:
        if ask.steps != len(SIGMAS):
            raise ValueError(f"these weights make {len(SIGMAS)} steps, asked for {ask.steps}")
        shape = (self._spec.tokens, self._spec.channels)
        return WaypointState(
            chunk=ask.chunk,
            frame=0 if ask.carry is None else ask.carry.frames,
            control_C=control_vector(ask.conditions.controls, ask.conditions.pointer),
            prompt_PW=_mixed(ask.features),
            step=0,
            x_TC=gaussian(NoiseKey(ask.seed, ask.branch, ask.chunk, 0), shape),
            committed=False,
            picture=None,
        )

    def next(self, state: WaypointState) -> WorkPlan[WaypointRow] | Done:
        shape = state.x_TC.shape
        row = PassRow(state.x_TC, self._levels[state.step], state.frame, state.control_C, state.prompt_PW)
        if state.step < len(SIGMAS):
            return WorkPlan(StepKind.DENOISE, shape, row)
        if not state.committed:
            return WorkPlan(StepKind.COMMIT, shape, row, Commit.CHUNK)
        if state.picture is None:
            return WorkPlan(StepKind.DECODE, shape, DecodeRow(state.x_TC))
        return Done()

    def advance(self, state: WaypointState, result: WaypointResult) -> WaypointState:
        match result:
            case Denoised(velocity_TC):
                if not np.isfinite(velocity_TC).all():
                    raise LatentFault(f"chunk {state.chunk}: step {state.step + 1} of {len(SIGMAS)} is not finite")
                down = np.float32(self._levels[state.step + 1] - self._levels[state.step])
                return msgspec.structs.replace(state, step=state.step + 1, x_TC=state.x_TC + down * velocity_TC)
            case Committed():
                return msgspec.structs.replace(state, committed=True)
            case Decoded(picture):
                return msgspec.structs.replace(state, picture=picture)
            case _:
                assert_never(result)

    def finalize(self, state: WaypointState) -> Outcome[WaypointCarry]:
        if state.picture is None:
            raise ValueError(f"chunk {state.chunk} is not decoded yet (step {state.step} of {len(SIGMAS)})")
        digest = hashlib.sha256(state.x_TC.astype("<f4").tobytes()).hexdigest()
        return Outcome(state.picture[None], self._carry(state), digest)

    def onward(self, state: WaypointState) -> WaypointCarry:
        return self._carry(state)

    def meet(self, state: WaypointState, carry: WaypointCarry) -> WaypointState:
        return state  # pictures are made from latents alone

    def _carry(self, state: WaypointState) -> WaypointCarry:
        return WaypointCarry(state.frame + 1)


def _mixed(features: tuple[tuple[object, float], ...]) -> Tensor:
    """Shares of prompts, mixed as embeddings; a world without a prompt is refused."""
    tensors = [(embedding, weight) for embedding, weight in features if isinstance(embedding, Tensor)]
    if not tensors or len(tensors) != len(features):
        raise TypeError(f"{len(features)} prompt embeddings, {len(tensors)} of them tensors: one or more are needed")
    mixed = tensors[0][0] * tensors[0][1]
    for embedding, weight in tensors[1:]:
        mixed = mixed + embedding * weight
    return mixed
