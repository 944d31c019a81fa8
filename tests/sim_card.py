"""A card without a model, for long simulations: two denoise steps, a commit, a decode, black frames of 2 x 2 pixels."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from worldroom.models.contract.cache import CacheSpec, CacheView
from worldroom.models.contract.card import FrameSpec, LoopSpec, ModelCard, Parity
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import Ask, Commit, Done, Outcome, StepKind, WorkPlan
from worldroom.models.contract.recipe import Method, Precision, RecipeSpec, RuntimeChoice

STEPS = (StepKind.DENOISE, StepKind.DENOISE, StepKind.COMMIT, StepKind.DECODE)


class SimState(msgspec.Struct, frozen=True):
    chunk: int
    done: int


class SimLoop:
    def __init__(self, per_chunk: int) -> None:
        self._frames_FHWC = np.zeros((per_chunk, 2, 2, 3), np.uint8)

    def init(self, ask: Ask[int]) -> SimState:
        return SimState(ask.chunk, 0)

    def next(self, state: SimState) -> WorkPlan[int] | Done:
        if state.done == len(STEPS):
            return Done()
        kind = STEPS[state.done]
        return WorkPlan(kind, (1,), state.chunk, Commit.CHUNK if kind is StepKind.COMMIT else Commit.NONE)

    def advance(self, state: SimState, result: int) -> SimState:
        return SimState(state.chunk, state.done + 1)

    def finalize(self, state: SimState) -> Outcome[int]:
        return Outcome(self._frames_FHWC, state.chunk, str(state.chunk))

    def early_carry(self, state: SimState) -> int:
        return state.chunk

    def rebase(self, state: SimState, carry: int) -> SimState:
        return state


class SimRuntime:
    def allocate(self, slots: int) -> None: ...

    def execute(self, kind: StepKind, rows: Sequence[int], views: Sequence[CacheView | None]) -> list[int]:
        return [*rows]

    def encode_prompt(self, text: str) -> object:
        return text

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[int, CacheView | None]]:
        return [(0, None)] * count


def sim_card(name: str, per_chunk: int = 2, fps: int = 2) -> LoadedCard:
    recipe = RecipeSpec(
        name,
        "none",
        ((1.0, 0.5),),
        (Precision.INT,),
        RuntimeChoice("none", 2, Precision.INT),
        (),
        "none",
        "none",
        Method.WRITTEN,
    )
    card = ModelCard(
        name=name,
        version="1",
        family="sim",
        title=name,
        components=(),
        loops=(LoopSpec("chunk_rollout", (StepKind.DENOISE, StepKind.COMMIT, StepKind.DECODE)),),
        recipe=recipe,
        parity=Parity(exact=True, tolerance=0.0),
        frame=FrameSpec(2, 2, 1, fps, per_chunk),
        controls=(),
        cache=CacheSpec(ring=3, bytes_per_entry=8),
        suggestions=("nothing",),
    )
    return LoadedCard(card, recipe.default, "none", {"chunk_rollout": SimLoop(per_chunk)}, SimRuntime())
