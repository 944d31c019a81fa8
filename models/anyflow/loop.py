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
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...kernels.philox import NoiseKey, gaussian
from ..contract.latents import Latents
from ..contract.loop import Ask, Commit, Committed, Done, Outcome, StepKind, WorkPlan
from ..shared.steps import Features as PromptFeatures
from ..shared.steps import last_picture, mixed_tensors
from .networks import Features
from .spec import AnyFlowSpec

Latent = NDArray[np.float32]


class AnyFlowCarry(msgspec.Struct, frozen=True):
    """Clean latents of the kept chunks, frames in order, and the decoder's feature cache."""

    latents_FCHW: Latent
    partition: tuple[int, ...]
    features: Features


class AnyFlowState(msgspec.Struct, frozen=True):
    """One chunk under way; after the last step `x_FCHW` is clean and belongs to `kept_FCHW`, split by `partition`.

    `picture_HWC`: to be encoded as the opening chunk, instead of denoising one.
    """

    chunk: int
    levels: tuple[float, ...]
    text_LM: Tensor
    carry: AnyFlowCarry | None
    step: int
    x_FCHW: Latent
    kept_FCHW: Latent
    partition: tuple[int, ...]
    committed: bool
    picture_HWC: NDArray[np.uint8] | None
    features: Features | None
    pictures: NDArray[np.uint8] | None


class DenoiseRow(msgspec.Struct, frozen=True):
    """From level t to r; the last chunk of `partition` is this one."""

    x_FCHW: Latent
    t: float
    r: float
    text_LM: Tensor
    partition: tuple[int, ...]


class CommitRow(msgspec.Struct, frozen=True):
    """All clean chunks that the next one may see."""

    kept_FCHW: Latent
    text_LM: Tensor
    partition: tuple[int, ...]


class EncodeRow(msgspec.Struct, frozen=True):
    """The picture a world begins from."""

    picture_HWC: NDArray[np.uint8]


class DecodeRow(msgspec.Struct, frozen=True):
    x_FCHW: Latent
    features: Features | None


AnyFlowRow = EncodeRow | DenoiseRow | CommitRow | DecodeRow


class Encoded(msgspec.Struct, frozen=True):
    clean_FCHW: Latent


class Denoised(msgspec.Struct, frozen=True):
    velocity_FCHW: Latent


class Decoded(msgspec.Struct, frozen=True):
    pictures: NDArray[np.uint8]
    features: Features


AnyFlowResult = Encoded | Denoised | Committed | Decoded


class AnyFlowLoop:
    """Stateless."""

    def __init__(self, spec: AnyFlowSpec) -> None:
        self._spec = spec

    def init(self, ask: Ask[AnyFlowCarry]) -> AnyFlowState:
        spec, carry = self._spec, ask.carry
        frames = 1 if carry is None else spec.chunk
        shape = (frames, spec.channels, spec.rows, spec.columns)
        past = () if carry is None else carry.partition
        return AnyFlowState(
            chunk=ask.chunk,
            levels=(*spec.levels(ask.steps), 0.0),
            text_LM=_mixed(ask.features, spec),
            carry=carry,
            step=0,
            x_FCHW=gaussian(NoiseKey(ask.seed, ask.branch, ask.chunk, 0), shape),
            kept_FCHW=np.zeros((0, *shape[1:]), np.float32) if carry is None else carry.latents_FCHW,
            partition=(*past, frames),
            committed=False,
            picture_HWC=last_picture(ask.first_frames_FHWC, spec.rows * 8, spec.columns * 8) if carry is None else None,
            features=None if carry is None else carry.features,
            pictures=None,
        )

    def next(self, state: AnyFlowState) -> WorkPlan[AnyFlowRow] | Done:
        shape = (*state.x_FCHW.shape, len(state.partition))
        if state.picture_HWC is not None:
            return WorkPlan(StepKind.ENCODE, state.picture_HWC.shape, EncodeRow(state.picture_HWC))
        if state.step < len(state.levels) - 1:
            t, r = state.levels[state.step : state.step + 2]
            row = DenoiseRow(state.x_FCHW, t, r, state.text_LM, state.partition)
            return WorkPlan(StepKind.DENOISE, shape, row)
        if not state.committed:
            commit = CommitRow(state.kept_FCHW, state.text_LM, state.partition)
            return WorkPlan(StepKind.COMMIT, shape, commit, Commit.CHUNK)
        if state.pictures is None:
            return WorkPlan(StepKind.DECODE, state.x_FCHW.shape, DecodeRow(state.x_FCHW, state.features))
        return Done()

    def advance(self, state: AnyFlowState, result: AnyFlowResult) -> AnyFlowState:
        match result:
            case Encoded(clean_FCHW):
                done = msgspec.structs.replace(state, picture_HWC=None, step=len(state.levels) - 1, x_FCHW=clean_FCHW)
                return msgspec.structs.replace(done, kept_FCHW=clean_FCHW)
            case Denoised(velocity_FCHW):
                return self._denoised(state, velocity_FCHW)
            case Committed():
                return msgspec.structs.replace(state, committed=True)
            case Decoded(pictures, features):
                return msgspec.structs.replace(state, pictures=pictures, features=features)
            case _:
                assert_never(result)

    def finalize(self, state: AnyFlowState) -> Outcome[AnyFlowCarry]:
        if state.pictures is None or state.features is None:
            raise ValueError(f"chunk {state.chunk} is not decoded yet (step {state.step} of {len(state.levels) - 1})")
        carry = AnyFlowCarry(state.kept_FCHW, state.partition, state.features)
        return Outcome(state.pictures, carry, Latents.of(state.x_FCHW))

    def early_carry(self, state: AnyFlowState) -> AnyFlowCarry | None:
        """With the decoder's features of the chunk before; a world's first pictures have none."""
        return None if state.features is None else AnyFlowCarry(state.kept_FCHW, state.partition, state.features)

    def rebase(self, state: AnyFlowState, carry: AnyFlowCarry) -> AnyFlowState:
        return msgspec.structs.replace(state, features=carry.features)

    def _denoised(self, state: AnyFlowState, velocity_FCHW: Latent) -> AnyFlowState:
        """One Euler step in float64; after the last one the chunk joins the history, and the oldest may leave it."""
        t, r = state.levels[state.step : state.step + 2]
        x_FCHW = (state.x_FCHW - (t - r) * velocity_FCHW.astype(np.float64)).astype(np.float32)
        after = msgspec.structs.replace(state, step=state.step + 1, x_FCHW=x_FCHW)
        if after.step < len(state.levels) - 1:
            return after
        kept, partition = np.concatenate([state.kept_FCHW, x_FCHW]), state.partition
        if len(partition) > self._spec.history:
            first, second = partition[:2]
            kept = np.concatenate([kept[:first], kept[first + second :]])
            partition = (first, *partition[2:])
        return msgspec.structs.replace(after, kept_FCHW=kept, partition=partition)


def _mixed(features: PromptFeatures, spec: AnyFlowSpec) -> Tensor:
    """Shares of prompts, mixed as embeddings; no prompt is an embedding of zeros."""
    if not features:
        return torch.zeros(spec.text_length, spec.text_dim)
    mixed = mixed_tensors(features)
    if tuple(mixed.shape) != (spec.text_length, spec.text_dim):
        raise TypeError(f"embeddings of [{spec.text_length}, {spec.text_dim}] are needed, got {list(mixed.shape)}")
    return mixed
