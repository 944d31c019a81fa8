"""The diffusion_denoise loop: whole clips by many guided steps over the same denoise body as the live loop.

    denoise x n  (sequential guidance: 2 n; a multistep sampler previews on the way)  ->  decode, a few frames at a time

Each step is a separate plan, so a clip renders in the slack of a live world on the same device. Every clip is new:
its carry says only that there was one. What guidance needs between two steps is in the state, so a clip goes on from
any of them. A preview is the first picture of what the sampler takes for clean.
"""

from enum import StrEnum
from typing import assert_never

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....kernels.philox import NoiseKey, gaussian
from ...contract.latents import Latents
from ...contract.loop import Ask, Committed, Done, Outcome, Preview, StepKind, WorkPlan
from ...contract.recipe import RecipeSpec
from ..card import UNIPC
from ..loop import mix
from ..rows import (
    Decoded,
    DecodeRow,
    Denoised,
    DenoiseRow,
    Encoded,
    Guide,
    Move,
    Policy,
    Prompt,
    WanResult,
    WanRow,
)
from ..spec import WanSpec, pixel_frames
from .unipc import Solver, advance, timestep

DECODED_AT_ONCE = 3  # latent frames
PREVIEWS = 4


class ClipCarry(msgspec.Struct, frozen=True):
    """Clips do not follow from one another."""

    clips: int


class Part(StrEnum):
    """Of a guided step: which velocity comes next."""

    NEGATIVE = "negative"
    WHOLE = "whole"


class ClipState(msgspec.Struct, frozen=True):
    """`negative_CFHW`: the velocity without the prompt between the two halves of a sequential step. `solver`: what a
    multistep sampler remembers; None = Euler. `shown`: previews made, `preview_FHWC` the newest.
    """

    seed: int
    branch: int
    chunk: int
    sigmas: tuple[float, ...]
    prompt: Prompt
    clips: int
    part: Part
    step: int = 0
    x_CFHW: Tensor | None = None
    negative_CFHW: Tensor | None = None
    features: tuple[Tensor, ...] = ()
    frames: tuple[NDArray[np.uint8], ...] = ()
    latents: tuple[Latents, ...] = ()
    solver: Solver | None = None
    shown: int = 0
    preview_FHWC: NDArray[np.uint8] | None = None


class ClipLoop:
    """Stateless; policy and scale are the spec's."""

    def __init__(
        self, spec: WanSpec, recipe: RecipeSpec, policy: Policy = Policy.BATCHED, sampler: str | None = None
    ) -> None:
        """`sampler` None = the recipe's."""
        self._spec, self._clip, self._recipe, self._policy = spec, spec.clip, recipe, policy
        self._multistep = (sampler or recipe.sampler) == UNIPC
        self._first_part = Part.NEGATIVE if policy is Policy.SEQUENTIAL else Part.WHOLE

    def init(self, ask: Ask[ClipCarry]) -> ClipState:
        s = self._spec.shape
        shape = (s.channels, self._clip.frames, s.rows, s.columns)
        noise = gaussian(NoiseKey(ask.seed, ask.branch, ask.chunk, 0), shape) if self._multistep else None
        return ClipState(
            seed=ask.seed,
            branch=ask.branch,
            chunk=ask.chunk,
            sigmas=self._recipe.levels(ask.steps),
            prompt=mix(ask.features, ask.conditions),
            clips=0 if ask.carry is None else ask.carry.clips,
            part=self._first_part,
            x_CFHW=None if noise is None else torch.from_numpy(noise),
            solver=Solver() if self._multistep else None,
        )

    def next(self, state: ClipState) -> WorkPlan[WanRow] | Done:
        s = self._spec
        if state.step < len(state.sigmas):
            if (clean := self._worth_showing(state)) is not None:
                return WorkPlan(StepKind.PREVIEW, (1, s.height, s.width), DecodeRow(clean, ()))
            shape = (s.shape.channels, self._clip.frames, s.shape.rows, s.shape.columns)
            return WorkPlan(StepKind.DENOISE, shape, self._denoise(state))
        done = len(state.frames) * DECODED_AT_ONCE
        if state.x_CFHW is None or done >= self._clip.frames:
            return Done()
        part = state.x_CFHW[:, done : done + DECODED_AT_ONCE].contiguous()
        frames = pixel_frames(part.shape[1], opens=not state.features)
        return WorkPlan(StepKind.DECODE, (frames, s.height, s.width), DecodeRow(part, state.features))

    def advance(self, state: ClipState, result: WanResult) -> ClipState:
        match result:
            case Denoised(negative_CFHW) if state.part is Part.NEGATIVE:
                return msgspec.structs.replace(state, negative_CFHW=negative_CFHW, part=Part.WHOLE, preview_FHWC=None)
            case Denoised(velocity_CFHW) if state.solver is not None and state.x_CFHW is not None:
                x, levels = state.x_CFHW.to(velocity_CFHW.device), (*state.sigmas, 0.0)
                x_CFHW, solver = advance(state.solver, levels, state.step, x, velocity_CFHW)
                moved = msgspec.structs.replace(state, x_CFHW=x_CFHW, solver=solver, preview_FHWC=None)
                return msgspec.structs.replace(moved, negative_CFHW=None, part=self._first_part, step=state.step + 1)
            case Denoised(x_CFHW):
                return msgspec.structs.replace(
                    state, x_CFHW=x_CFHW, negative_CFHW=None, part=self._first_part, step=state.step + 1
                )
            case Decoded(frames) if state.step < len(state.sigmas):
                return msgspec.structs.replace(state, shown=state.shown + 1, preview_FHWC=frames)
            case Decoded(frames, features, latents):
                return msgspec.structs.replace(
                    state,
                    frames=(*state.frames, frames),
                    features=features,
                    latents=(*state.latents, latents),
                )
            case Committed() | Encoded():
                raise ValueError(f"a clip has no step that answers with {type(result).__name__}")
            case _:
                assert_never(result)

    def finalize(self, state: ClipState) -> Outcome[ClipCarry]:
        if len(state.frames) * DECODED_AT_ONCE < self._clip.frames:
            raise ValueError(f"clip {state.chunk} is not done: step {state.step}, {len(state.frames)} parts decoded")
        return Outcome(np.concatenate(state.frames), ClipCarry(state.clips + 1), Latents.joined(state.latents, axis=1))

    def early_carry(self, state: ClipState) -> ClipCarry:
        return ClipCarry(state.clips + 1)

    def rebase(self, state: ClipState, carry: ClipCarry) -> ClipState:
        return state  # clips know nothing of each other

    def preview(self, state: ClipState) -> Preview | None:
        if state.preview_FHWC is None:
            return None
        return Preview(state.preview_FHWC, first=0, done=state.step / len(state.sigmas))

    def _worth_showing(self, state: ClipState) -> Tensor | None:
        """The first latent frame of what the sampler takes for clean, a few times in a clip."""
        every = max(1, len(state.sigmas) // (PREVIEWS + 1))
        if state.solver is None or not state.solver.clean or state.step // every <= state.shown:
            return None
        return state.solver.clean[-1][:, :1].float().contiguous()

    def _denoise(self, state: ClipState) -> DenoiseRow:
        last = state.step == len(state.sigmas) - 1
        guide = Guide(self._policy, self._clip.guidance, state.part.value, state.negative_CFHW)
        return DenoiseRow(
            x_CFHW=state.x_CFHW,
            frames=self._clip.frames,
            sigma=state.sigmas[state.step],
            next_sigma=0.0 if last else state.sigmas[state.step + 1],
            move=Move.EULER if state.solver is None else Move.STAY,
            noise=NoiseKey(state.seed, state.branch, state.chunk, 0),
            first_frame=0,
            prompt=state.prompt,
            guide=None if self._policy is Policy.NONE else guide,
            timestep=None if state.solver is None else timestep(state.sigmas[state.step]),
        )
