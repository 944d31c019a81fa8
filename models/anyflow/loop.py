"""AnyFlow's chunk_rollout loop: n flow-map steps, one commit pass over the clean history, one decode. A world may open
with a picture, which is encoded as its first frame.

    x at t_0 = 1 -> t_1 -> ... -> 0          x += (r - t) * velocity(x, t, r; cache)
    partition    (1, 3, 3, 3, 3, 3) + 3      the opening chunk stays, the second oldest is forgotten when it is full

Positions restart with the kept history, so they never pass what the weights were trained for. The commit pass writes a
whole new cache, under the prompt of this chunk, into the entry that is free. Knows no diffusers, no slots, no time.
Legend: F latent frames, C channels, H W rows and columns, L text tokens, M text width.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ...kernels.philox import NoiseKey
from ..contract.latents import Latents
from ..contract.loop import Ask, Commit, Committed, Done, Outcome, StepKind, WorkPlan
from ..shared.steps import Features as PromptFeatures
from ..shared.steps import last_picture, mixed_tensors
from .networks import Features
from .spec import AnyFlowSpec

Pictures = NDArray[np.uint8]


class AnyFlowCarry(msgspec.Struct, frozen=True):
    """Clean latents [F, C, H, W] of the kept chunks in order, and the decoder's feature cache."""

    kept: tuple[Tensor, ...]
    features: Features


class AnyFlowState(msgspec.Struct, frozen=True):
    """One chunk under way; `x_FCHW` None = the first step starts from noise, after the last step it is clean and the
    last of `kept`. `partition`: latent frames of the kept chunks and of this one.

    `picture_HWC`: to be encoded as the opening chunk, instead of denoising one. `text_LM` None = no prompt.
    """

    noise: NoiseKey
    levels: tuple[float, ...]
    text_LM: Tensor | None
    kept: tuple[Tensor, ...]
    partition: tuple[int, ...]
    step: int
    x_FCHW: Tensor | None
    committed: bool
    picture_HWC: Pictures | None
    features: Features | None
    pictures: Pictures | None
    latents: Latents | None


class DenoiseRow(msgspec.Struct, frozen=True):
    """From level t to r; the last chunk of `partition` is this one. It answers with x at level r.

    `x_FCHW` None = it is the noise of `noise` itself. `text_LM` None = an embedding of zeros.
    """

    x_FCHW: Tensor | None
    noise: NoiseKey
    t: float
    r: float
    text_LM: Tensor | None
    partition: tuple[int, ...]


class CommitRow(msgspec.Struct, frozen=True):
    """All clean chunks that the next one may see."""

    kept: tuple[Tensor, ...]
    text_LM: Tensor | None

    @property
    def partition(self) -> tuple[int, ...]:
        return tuple(len(chunk) for chunk in self.kept)


class EncodeRow(msgspec.Struct, frozen=True):
    """The picture a world begins from."""

    picture_HWC: Pictures


class DecodeRow(msgspec.Struct, frozen=True):
    x_FCHW: Tensor
    features: Features | None


AnyFlowRow = EncodeRow | DenoiseRow | CommitRow | DecodeRow


class Encoded(msgspec.Struct, frozen=True):
    clean_FCHW: Tensor


class Denoised(msgspec.Struct, frozen=True):
    x_FCHW: Tensor


class Decoded(msgspec.Struct, frozen=True):
    pictures: Pictures
    features: Features
    latents: Latents


AnyFlowResult = Encoded | Denoised | Committed | Decoded


class AnyFlowLoop:
    """Stateless."""

    def __init__(self, spec: AnyFlowSpec) -> None:
        self._spec = spec

    def init(self, ask: Ask[AnyFlowCarry]) -> AnyFlowState:
        spec, carry = self._spec, ask.carry
        kept = () if carry is None else carry.kept
        opening = last_picture(ask.first_frames_FHWC, spec.rows * 8, spec.columns * 8) if carry is None else None
        return AnyFlowState(
            noise=NoiseKey(ask.seed, ask.branch, ask.chunk, 0),
            levels=(*spec.levels(ask.steps), 0.0),
            text_LM=_mixed(ask.features, spec) if ask.features else None,
            kept=kept,
            partition=(*(len(chunk) for chunk in kept), spec.chunk if kept else 1),
            step=0,
            x_FCHW=None,
            committed=False,
            picture_HWC=opening,
            features=None if carry is None else carry.features,
            pictures=None,
            latents=None,
        )

    def next(self, state: AnyFlowState) -> WorkPlan[AnyFlowRow] | Done:
        spec, partition = self._spec, state.partition
        shape = (partition[-1], spec.channels, spec.rows, spec.columns)
        if state.picture_HWC is not None:
            return WorkPlan(StepKind.ENCODE, state.picture_HWC.shape, EncodeRow(state.picture_HWC))
        if state.step < len(state.levels) - 1:
            t, r = state.levels[state.step : state.step + 2]
            row = DenoiseRow(state.x_FCHW, state.noise, t, r, state.text_LM, partition)
            return WorkPlan(StepKind.DENOISE, (*shape, len(partition)), row)
        if not state.committed:
            commit = CommitRow(state.kept, state.text_LM)
            return WorkPlan(StepKind.COMMIT, (*shape, len(partition)), commit, Commit.CHUNK)
        if state.pictures is None and state.x_FCHW is not None:
            return WorkPlan(StepKind.DECODE, shape, DecodeRow(state.x_FCHW, state.features))
        return Done()

    def advance(self, state: AnyFlowState, result: AnyFlowResult) -> AnyFlowState:
        match result:
            case Encoded(clean_FCHW):
                encoded = msgspec.structs.replace(state, picture_HWC=None, step=len(state.levels) - 1)
                return self._clean(encoded, clean_FCHW)
            case Denoised(x_FCHW):
                moved = msgspec.structs.replace(state, step=state.step + 1, x_FCHW=x_FCHW)
                return moved if moved.step < len(state.levels) - 1 else self._clean(moved, x_FCHW)
            case Committed():
                return msgspec.structs.replace(state, committed=True)
            case Decoded(pictures, features, latents):
                return msgspec.structs.replace(state, pictures=pictures, features=features, latents=latents)
            case _:
                assert_never(result)

    def finalize(self, state: AnyFlowState) -> Outcome[AnyFlowCarry]:
        if state.pictures is None or state.features is None or state.latents is None:
            steps = len(state.levels) - 1
            raise ValueError(f"chunk {state.noise.chunk} is not decoded yet (step {state.step} of {steps})")
        return Outcome(state.pictures, AnyFlowCarry(state.kept, state.features), state.latents)

    def early_carry(self, state: AnyFlowState) -> AnyFlowCarry | None:
        """With the decoder's features of the chunk before; a world's first pictures have none."""
        return None if state.features is None else AnyFlowCarry(state.kept, state.features)

    def rebase(self, state: AnyFlowState, carry: AnyFlowCarry) -> AnyFlowState:
        return msgspec.structs.replace(state, features=carry.features)

    def _clean(self, state: AnyFlowState, x_FCHW: Tensor) -> AnyFlowState:
        """The chunk joins the history; the second oldest leaves it when it is full."""
        kept = (*state.kept, x_FCHW)
        if len(kept) > self._spec.history:
            kept = (kept[0], *kept[2:])
        partition = tuple(len(chunk) for chunk in kept)
        return msgspec.structs.replace(state, x_FCHW=x_FCHW, kept=kept, partition=partition)


def _mixed(features: PromptFeatures, spec: AnyFlowSpec) -> Tensor:
    """Shares of prompts, mixed as embeddings."""
    mixed = mixed_tensors(features)
    if tuple(mixed.shape) != (spec.text_length, spec.text_dim):
        raise TypeError(f"embeddings of [{spec.text_length}, {spec.text_dim}] are needed, got {list(mixed.shape)}")
    return mixed
