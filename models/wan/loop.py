"""The chunk_rollout loop of the causal Wan cards.

    [encode] -> [recache] -> denoise x k -> commit -> decode          a committed window
    [encode] -> recache   -> denoise x k ->           decode          `context`: nothing is committed

A world may open with pictures: they are encoded and committed as its first chunk instead of a denoised one. `recache`
runs when the prompt has changed (or the conditions ask for it); its entries are staged like any other write, so a
cancelled chunk leaves the old ones. Knows neither slots nor networks.
"""

from enum import StrEnum
from typing import assert_never

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...kernels.philox import NoiseKey
from ..contract.conditions import Conditions
from ..contract.loop import Ask, Commit, Committed, Done, Outcome, StepKind, WorkPlan
from ..contract.recipe import RecipeSpec
from ..shared.steps import check_pictures, needed, tensors
from .rows import (
    CommitRow,
    Decoded,
    DecodeRow,
    Denoised,
    DenoiseRow,
    Encoded,
    EncodeRow,
    Move,
    Prompt,
    RecacheRow,
    WanResult,
    WanRow,
)
from .spec import WanSpec, pixel_frames


class Phase(StrEnum):
    """What the chunk does next."""

    ENCODE = "encode"
    RECACHE = "recache"
    DENOISE = "denoise"
    COMMIT = "commit"
    DECODE = "decode"
    DONE = "done"


class WanCarry(msgspec.Struct, frozen=True):
    """What a chunk hands on. `clean_CFHW`: the last clean latents, as many as rebuilding may need.

    `edge_3HW`: the first picture of the next context, for cards that rebuild from context.
    """

    next_frame: int
    prompt: str
    features: tuple[Tensor, ...]
    clean_CFHW: Tensor | None
    edge_3HW: Tensor | None


class WanState(msgspec.Struct, frozen=True):
    """One chunk under way. `x_CFHW` is None before the first step and clean after the last one."""

    seed: int
    branch: int
    chunk: int
    sigmas: tuple[float, ...]
    first_frame: int
    prompt: Prompt
    carry: WanCarry | None
    opening_3THW: Tensor | None
    phase: Phase
    step: int = 0
    x_CFHW: Tensor | None = None
    context_CFHW: Tensor | None = None
    rebuilt: int = 0
    decoded: Decoded | None = None


class WanLoop:
    """Stateless; the spec says which phases a chunk has."""

    def __init__(self, spec: WanSpec, recipe: RecipeSpec) -> None:
        self._spec, self._plan, self._recipe = spec, spec.rollout, recipe

    def init(self, ask: Ask[WanCarry]) -> WanState:
        """Raises `RecipeMismatch`, or ValueError on opening pictures or a rebuild the card cannot take."""
        prompt, carry = mix(ask.features, ask.conditions), ask.carry
        state = WanState(
            seed=ask.seed,
            branch=ask.branch,
            chunk=ask.chunk,
            sigmas=self._recipe.levels(ask.steps),
            first_frame=0 if carry is None else carry.next_frame,
            prompt=prompt,
            carry=carry,
            opening_3THW=None,
            phase=Phase.DENOISE,
        )
        if carry is None:
            if ask.first_frames_FHWC is not None:
                opening = self._opening(ask.first_frames_FHWC)
                return msgspec.structs.replace(state, opening_3THW=opening, phase=Phase.ENCODE)
            return state
        if self._plan.context:
            slid = carry.next_frame > self._plan.context
            return msgspec.structs.replace(state, phase=Phase.ENCODE if slid else Phase.RECACHE)
        if self._rebuilds(ask, prompt, carry):
            return msgspec.structs.replace(state, phase=Phase.RECACHE)
        return state

    def next(self, state: WanState) -> WorkPlan[WanRow] | Done:
        s, shape = (
            self._spec,
            (self._spec.shape.channels, self._plan.chunk, self._spec.shape.rows, self._spec.shape.columns),
        )
        match state.phase:
            case Phase.ENCODE:
                picture = state.opening_3THW if state.carry is None else needed(state.carry.edge_3HW)[:, None]
                row = EncodeRow(needed(picture))
                return WorkPlan(StepKind.ENCODE, tuple(row.picture_3THW.shape), row)
            case Phase.RECACHE:
                return self._recache(state)
            case Phase.DENOISE:
                last = state.step == len(state.sigmas) - 1
                denoise = DenoiseRow(
                    x_CFHW=state.x_CFHW,
                    frames=self._plan.chunk,
                    sigma=state.sigmas[state.step],
                    next_sigma=0.0 if last else state.sigmas[state.step + 1],
                    move=Move.RENOISE,
                    noise=NoiseKey(state.seed, state.branch, state.chunk, state.step),
                    first_frame=state.first_frame,
                    prompt=state.prompt,
                    rebuilt=state.rebuilt,
                    context=self._plan.context if state.carry is not None else 0,
                )
                return WorkPlan(StepKind.DENOISE, shape, denoise)
            case Phase.COMMIT:
                commit = CommitRow(needed(state.x_CFHW), state.first_frame, state.prompt, state.rebuilt)
                return WorkPlan(StepKind.COMMIT, shape, commit, Commit.CHUNK)
            case Phase.DECODE:
                edge = pixel_frames(self._plan.context, opens=True) if self._plan.context else 0
                features = () if state.carry is None else state.carry.features
                decode = DecodeRow(needed(state.x_CFHW), features, edge)
                frames = pixel_frames(self._plan.chunk, opens=state.carry is None)
                return WorkPlan(StepKind.DECODE, (frames, s.height, s.width), decode)
            case Phase.DONE:
                return Done()
            case _:
                assert_never(state.phase)

    def advance(self, state: WanState, result: WanResult) -> WanState:
        match result:
            case Encoded(x_CFHW) if state.carry is None:
                phase = Phase.DECODE if self._plan.context else Phase.COMMIT
                return msgspec.structs.replace(state, x_CFHW=x_CFHW, phase=phase)
            case Encoded(x_CFHW):
                return msgspec.structs.replace(state, context_CFHW=x_CFHW, phase=Phase.RECACHE)
            case Committed() if state.phase is Phase.RECACHE:
                return msgspec.structs.replace(state, phase=Phase.DENOISE, rebuilt=self._kept(state))
            case Committed():
                return msgspec.structs.replace(state, phase=Phase.DECODE)
            case Denoised(x_CFHW):
                step = state.step + 1
                ended = Phase.DECODE if self._plan.context else Phase.COMMIT
                phase = ended if step == len(state.sigmas) else Phase.DENOISE
                return msgspec.structs.replace(state, x_CFHW=x_CFHW, step=step, phase=phase)
            case Decoded():
                return msgspec.structs.replace(state, decoded=result, phase=Phase.DONE)
            case _:
                assert_never(result)

    def finalize(self, state: WanState) -> Outcome[WanCarry]:
        if state.decoded is None or state.x_CFHW is None:
            raise ValueError(f"chunk {state.chunk} is not decoded yet (phase {state.phase}, step {state.step})")
        decoded = state.decoded
        carry = self._carry(state, state.x_CFHW, decoded.features, decoded.edge_3HW)
        return Outcome(decoded.frames, carry, decoded.latents)

    def early_carry(self, state: WanState) -> WanCarry | None:
        """With the decoder's features of the chunk before. A world's first pictures have none, and a card that rebuilds
        from context begins with the pictures themselves.
        """
        if state.carry is None or self._plan.context:
            return None
        return self._carry(state, needed(state.x_CFHW), state.carry.features, None)

    def rebase(self, state: WanState, carry: WanCarry) -> WanState:
        assert state.carry is not None, "it began from a carry"
        return msgspec.structs.replace(state, carry=msgspec.structs.replace(state.carry, features=carry.features))

    def _carry(
        self, state: WanState, x_CFHW: Tensor, features: tuple[Tensor, ...], edge_3HW: Tensor | None
    ) -> WanCarry:
        kept, clean = self._plan.kept_frames, None
        if kept:
            before = [] if state.carry is None else [needed(state.carry.clean_CFHW).to(x_CFHW.device)]
            clean = torch.cat([*before, x_CFHW], 1)[:, -kept:].contiguous()
        return WanCarry(state.first_frame + self._plan.chunk, state.prompt.key, features, clean, edge_3HW)

    def _rebuilds(self, ask: Ask[WanCarry], prompt: Prompt, carry: WanCarry) -> bool:
        """At a switch: when the mix has changed and is a single prompt (a blend rebuilds once, when it has arrived)."""
        if ask.conditions.recache and not self._plan.recache_frames:
            raise ValueError(f"card '{self._spec.name}' keeps no latents to rebuild its cache from")
        switched = self._plan.recache and prompt.key != carry.prompt and len(prompt.shares) == 1
        past_sink = carry.next_frame > self._plan.sink
        return bool(self._plan.recache_frames) and past_sink and (switched or ask.conditions.recache)

    def _recache(self, state: WanState) -> WorkPlan[WanRow]:
        carry = state.carry
        if carry is None:
            raise ValueError(f"chunk {state.chunk} opens its world: there is nothing to rebuild")
        clean = needed(carry.clean_CFHW)
        if self._plan.context:
            if state.context_CFHW is not None:
                clean = torch.cat((state.context_CFHW.to(clean.device), clean[:, 1 - self._plan.context :]), 1)
            row = RecacheRow(clean, 0, state.prompt, keep=0)
            return WorkPlan(StepKind.RECACHE, tuple(clean.shape), row)
        first = max(carry.next_frame - clean.shape[1], self._plan.sink)
        clean = clean[:, first - carry.next_frame :]
        kept = self._kept(state)
        row = RecacheRow(clean, first, state.prompt, keep=kept)
        return WorkPlan(StepKind.RECACHE, tuple(clean.shape), row, Commit.NONE, rebuilt=kept)

    def _kept(self, state: WanState) -> int:
        """Chunks whose rebuilt entries the chunk being made will see beside the sink."""
        if self._plan.context:
            return 0
        past = (state.first_frame - self._plan.sink) // self._plan.chunk
        return min(past, self._plan.past_chunks - self._plan.sink_chunks)

    def _opening(self, frames_FHWC: NDArray[np.uint8]) -> Tensor:
        """One picture stands still for a chunk; of a video the last frames are taken."""
        needed, s = pixel_frames(self._plan.chunk, opens=True), self._spec
        count = len(frames_FHWC)
        check_pictures(frames_FHWC, s.height, s.width)
        if count != 1 and count < needed:
            raise ValueError(f"a world opens with one picture or at least {needed} frames, got {count}")
        chosen = frames_FHWC.repeat(needed, axis=0) if count == 1 else frames_FHWC[-needed:]
        return torch.from_numpy(chosen.astype(np.float32)).permute(3, 0, 1, 2) / 127.5 - 1


def mix(features: tuple[tuple[object, float], ...], conditions: Conditions) -> Prompt:
    """An ask's prompts; the key holds the embeddings' keys and weights."""
    shares = tensors(features)
    if len(shares) != len(conditions.prompts):
        raise ValueError(f"{len(shares)} embeddings for {len(conditions.prompts)} prompts")
    key = "+".join(f"{share.weight!r}*{share.key}" for share in conditions.prompts)
    return Prompt(key, tuple(shares), conditions.adapters)
