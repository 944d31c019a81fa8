"""Waypoint's chunk_rollout loop: one latent frame a chunk, four Euler steps against a frozen cache, one commit pass.

    x = noise;  x += (next level - level) * velocity(x, level)   four times;  commit at level 0;  decode

Knows no torch functions, no slots and no time. Legend: T tokens of a frame, C channels, P prompt tokens, W their width.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ...kernels.philox import NoiseKey
from ..contract.conditions import AdapterShare
from ..contract.latents import Latents
from ..contract.loop import Ask, Commit, Committed, Done, Outcome, StepKind, WorkPlan
from ..shared.steps import mixed_tensors
from .controls import control_vector
from .spec import SIGMAS, WaypointSpec

Vector = NDArray[np.float32]


class WaypointCarry(msgspec.Struct, frozen=True):
    """`frames`: committed so far; every frame's place in time."""

    frames: int


class WaypointState(msgspec.Struct, frozen=True):
    """One chunk under way; `x_TC` None = the first step starts from noise, after the last step it is clean."""

    seed: int
    branch: int
    chunk: int
    frame: int
    control_C: Vector
    prompt_PW: Tensor
    adapters: tuple[AdapterShare, ...]
    step: int
    x_TC: Tensor | None
    committed: bool
    picture: NDArray[np.uint8] | None
    latents: Latents | None


class PassRow(msgspec.Struct, frozen=True):
    """One pass of frame number `frame` at noise level `sigma`; a commit pass has sigma 0.

    A denoise pass answers with x at `next_sigma`. `x_TC` None = it is the noise of `noise` itself.
    `adapters`: what stands beside the weights for the row.
    """

    x_TC: Tensor | None
    sigma: float
    next_sigma: float
    noise: NoiseKey
    frame: int
    control_C: Vector
    prompt_PW: Tensor
    adapters: tuple[AdapterShare, ...] = ()


class DecodeRow(msgspec.Struct, frozen=True):
    x_TC: Tensor


WaypointRow = PassRow | DecodeRow


class Denoised(msgspec.Struct, frozen=True):
    x_TC: Tensor


class Decoded(msgspec.Struct, frozen=True):
    picture: NDArray[np.uint8]
    latents: Latents


WaypointResult = Denoised | Committed | Decoded


class WaypointLoop:
    """Stateless."""

    def __init__(self, spec: WaypointSpec) -> None:
        self._spec, self._levels = spec, (*SIGMAS, 0.0)

    def init(self, ask: Ask[WaypointCarry]) -> WaypointState:
        if ask.steps != len(SIGMAS):
            raise ValueError(f"these weights make {len(SIGMAS)} steps, asked for {ask.steps}")
        return WaypointState(
            seed=ask.seed,
            branch=ask.branch,
            chunk=ask.chunk,
            frame=0 if ask.carry is None else ask.carry.frames,
            control_C=control_vector(ask.conditions.controls, ask.conditions.pointer),
            prompt_PW=mixed_tensors(ask.features),
            adapters=ask.conditions.adapters,
            step=0,
            x_TC=None,
            committed=False,
            picture=None,
            latents=None,
        )

    def next(self, state: WaypointState) -> WorkPlan[WaypointRow] | Done:
        shape = (self._spec.tokens, self._spec.channels)
        if state.step < len(SIGMAS):
            return WorkPlan(StepKind.DENOISE, shape, self._pass(state, *self._levels[state.step :][:2]))
        if not state.committed:
            return WorkPlan(StepKind.COMMIT, shape, self._pass(state, 0.0, 0.0), Commit.CHUNK)
        if state.picture is None and state.x_TC is not None:
            return WorkPlan(StepKind.DECODE, shape, DecodeRow(state.x_TC))
        return Done()

    def advance(self, state: WaypointState, result: WaypointResult) -> WaypointState:
        match result:
            case Denoised(x_TC):
                return msgspec.structs.replace(state, step=state.step + 1, x_TC=x_TC)
            case Committed():
                return msgspec.structs.replace(state, committed=True)
            case Decoded(picture, latents):
                return msgspec.structs.replace(state, picture=picture, latents=latents)
            case _:
                assert_never(result)

    def finalize(self, state: WaypointState) -> Outcome[WaypointCarry]:
        if state.picture is None or state.latents is None:
            raise ValueError(f"chunk {state.chunk} is not decoded yet (step {state.step} of {len(SIGMAS)})")
        return Outcome(state.picture[None], self._carry(state), state.latents)

    def early_carry(self, state: WaypointState) -> WaypointCarry:
        return self._carry(state)

    def rebase(self, state: WaypointState, carry: WaypointCarry) -> WaypointState:
        return state  # pictures are made from latents alone

    def _pass(self, state: WaypointState, sigma: float, next_sigma: float) -> PassRow:
        noise = NoiseKey(state.seed, state.branch, state.chunk, 0)
        steering = (state.control_C, state.prompt_PW, state.adapters)
        return PassRow(state.x_TC, sigma, next_sigma, noise, state.frame, *steering)

    def _carry(self, state: WaypointState) -> WaypointCarry:
        return WaypointCarry(state.frame + 1)
