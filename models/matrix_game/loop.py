"""Matrix-Game's chunk_rollout loop: encode the opening picture once, three denoise steps, one commit, one decode.

    actions of a chunk   [ 9 frames carried | 12 frames held ]      a latent frame sees the 12 before its last one
    opening              [ 12 frames, all held                | 9 ]  there is nothing before the first frame

Between steps the clean prediction is noised anew at the next level. Knows no torch functions, no slots and no time.
Legend: C channels, F latent frames, K latent frames of conditions, H W latent rows and columns, A action frames.
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
from ..shared.steps import last_picture, mixed
from .actions import action
from .card import levels
from .spec import MatrixGameSpec

Picture = NDArray[np.uint8]
Vectors = NDArray[np.float32]
KEPT = 9  # action frames a chunk hands on


class World(msgspec.Struct, frozen=True):
    """What the opening picture gives a world for good: its latents followed by nothing, and its tokens."""

    condition_CKHW: Tensor
    image_IM: Tensor


class MatrixGameCarry(msgspec.Struct, frozen=True):
    """`frames`: latent frames made; `features`: the decoder's."""

    world: World
    frames: int
    keyboard_AK: Vectors
    mouse_A2: Vectors
    features: tuple[Tensor, ...]


class MatrixGameState(msgspec.Struct, frozen=True):
    """One chunk under way; `x_CFHW` None = the first step starts from noise, after the last step it is clean."""

    seed: int
    branch: int
    chunk: int
    opening_HWC: Picture | None
    palette: Vectors
    world: World | None
    first_frame: int
    keyboard_AK: Vectors
    mouse_A2: Vectors
    adapters: tuple[AdapterShare, ...]
    features: tuple[Tensor, ...]
    step: int
    x_CFHW: Tensor | None
    committed: bool
    pictures: Picture | None
    latents: Latents | None


class EncodeRow(msgspec.Struct, frozen=True):
    """The opening picture, or the colours of one to draw."""

    opening_HWC: Picture | None
    palette: Vectors


class PassRow(msgspec.Struct, frozen=True):
    """One pass at noise level `sigma`; a commit pass has sigma 0.

    A denoise pass answers with the next x: the clean one noised to `next_sigma` with the noise of step + 1.
    `adapters`: what stands beside the weights for the row.
    """

    x_CFHW: Tensor | None
    sigma: float
    next_sigma: float
    noise: NoiseKey
    world: World
    keyboard_AK: Vectors
    mouse_A2: Vectors
    first_frame: int
    adapters: tuple[AdapterShare, ...] = ()


class DecodeRow(msgspec.Struct, frozen=True):
    x_CFHW: Tensor
    features: tuple[Tensor, ...]


MatrixGameRow = EncodeRow | PassRow | DecodeRow


class Encoded(msgspec.Struct, frozen=True):
    world: World


class Denoised(msgspec.Struct, frozen=True):
    x_CFHW: Tensor


class Decoded(msgspec.Struct, frozen=True):
    pictures: Picture
    features: tuple[Tensor, ...]
    latents: Latents


MatrixGameResult = Encoded | Denoised | Committed | Decoded


class MatrixGameLoop:
    """Stateless."""

    def __init__(self, spec: MatrixGameSpec) -> None:
        self._spec, self._levels = spec, (*levels(), 0.0)

    def init(self, ask: Ask[MatrixGameCarry]) -> MatrixGameState:
        if ask.steps != len(self._levels) - 1:
            raise ValueError(f"these weights make {len(self._levels) - 1} steps, asked for {ask.steps}")
        spec, carry = self._spec, ask.carry
        keyboard, mouse = action(spec.mode, ask.conditions.controls, ask.conditions.pointer)
        fresh = 4 * spec.chunk if carry is not None else 4 * spec.chunk + KEPT
        held = (np.tile(keyboard, (fresh, 1)), np.tile(mouse, (fresh, 1)))
        if carry is not None:
            held = (np.concatenate([carry.keyboard_AK, held[0]]), np.concatenate([carry.mouse_A2, held[1]]))
        return MatrixGameState(
            seed=ask.seed,
            branch=ask.branch,
            chunk=ask.chunk,
            opening_HWC=last_picture(ask.first_frames_FHWC, spec.rows * 8, spec.columns * 8),
            palette=mixed(ask.features, (2, 3)),
            world=None if carry is None else carry.world,
            first_frame=0 if carry is None else carry.frames,
            keyboard_AK=held[0],
            mouse_A2=held[1],
            adapters=ask.conditions.adapters,
            features=() if carry is None else carry.features,
            step=0,
            x_CFHW=None,
            committed=False,
            pictures=None,
            latents=None,
        )

    def next(self, state: MatrixGameState) -> WorkPlan[MatrixGameRow] | Done:
        spec = self._spec
        shape = (spec.chunk, spec.rows, spec.columns)
        if state.world is None:
            return WorkPlan(StepKind.ENCODE, shape, EncodeRow(state.opening_HWC, state.palette))
        if state.step < len(self._levels) - 1:
            return WorkPlan(StepKind.DENOISE, shape, self._pass(state, state.world, *self._levels[state.step :][:2]))
        if not state.committed:
            return WorkPlan(StepKind.COMMIT, shape, self._pass(state, state.world, 0.0, 0.0), Commit.CHUNK)
        if state.pictures is None and state.x_CFHW is not None:
            return WorkPlan(StepKind.DECODE, shape, DecodeRow(state.x_CFHW, state.features))
        return Done()

    def advance(self, state: MatrixGameState, result: MatrixGameResult) -> MatrixGameState:
        match result:
            case Encoded(world):
                return msgspec.structs.replace(state, world=world)
            case Denoised(x_CFHW):
                return msgspec.structs.replace(state, x_CFHW=x_CFHW, step=state.step + 1)
            case Committed():
                return msgspec.structs.replace(state, committed=True)
            case Decoded(pictures, features, latents):
                return msgspec.structs.replace(state, pictures=pictures, features=features, latents=latents)
            case _:
                assert_never(result)

    def finalize(self, state: MatrixGameState) -> Outcome[MatrixGameCarry]:
        if state.pictures is None or state.world is None or state.latents is None:
            raise ValueError(f"chunk {state.chunk} is not decoded yet (step {state.step} of {len(self._levels) - 1})")
        return Outcome(state.pictures, self._carry(state, state.world), state.latents)

    def early_carry(self, state: MatrixGameState) -> MatrixGameCarry | None:
        """With the decoder's features of the chunk before; a world's first pictures have none."""
        return self._carry(state, state.world) if state.world is not None and state.features else None

    def rebase(self, state: MatrixGameState, carry: MatrixGameCarry) -> MatrixGameState:
        return msgspec.structs.replace(state, features=carry.features)

    def _carry(self, state: MatrixGameState, world: World) -> MatrixGameCarry:
        frames = state.first_frame + self._spec.chunk
        return MatrixGameCarry(world, frames, state.keyboard_AK[-KEPT:], state.mouse_A2[-KEPT:], state.features)

    def _pass(self, state: MatrixGameState, world: World, sigma: float, next_sigma: float) -> PassRow:
        noise = NoiseKey(state.seed, state.branch, state.chunk, state.step)
        actions = (state.keyboard_AK, state.mouse_A2)
        return PassRow(state.x_CFHW, sigma, next_sigma, noise, world, *actions, state.first_frame, state.adapters)
