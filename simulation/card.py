"""A card without its model: it asks for the steps that a price sheet lists, computes nothing, and shows black frames.

The card's data are its own (frames, cache, recipe, program), so the engine admits, batches, paces and counts as it does
with weights. What a step would have made is left out; which session, chunk and step it is of stands in its row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec
import numpy as np

from ..models.contract.cache import CacheView
from ..models.contract.card import FrameSpec, ModelCard
from ..models.contract.components import HostBytes
from ..models.contract.footprint import Footprint
from ..models.contract.latents import Latents
from ..models.contract.loaded import LoadedCard
from ..models.contract.loop import Ask, Commit, Done, Outcome, StepKind, WorkPlan
from ..models.contract.placement import realtime

COMMITS = {StepKind.COMMIT: Commit.CHUNK, StepKind.COMMIT_DENOISE: Commit.PREVIOUS}


class SimulatedRow(NamedTuple):
    """Which step this is: its price scatters with it, and with nothing else."""

    seed: int
    chunk: int
    step: int


class SimulatedCarry(msgspec.Struct, frozen=True):
    chunk: int


class SimulatedState(msgspec.Struct, frozen=True):
    seed: int
    chunk: int
    opens: bool
    kinds: tuple[StepKind, ...]
    done: int = 0


@dataclass(frozen=True, slots=True)
class SimulatedLoop:
    """`kinds`: the steps of one chunk at `steps` denoise steps; with fewer or more it has that many more passes."""

    frame: FrameSpec
    kinds: tuple[StepKind, ...]
    steps: int

    def chunk(self, steps: int) -> tuple[StepKind, ...]:
        """Of so many denoise steps. A step may be several passes (guidance), or one of them fused with a commit."""
        fused = self.kinds.count(StepKind.COMMIT_DENOISE)
        passes = self.kinds.count(StepKind.DENOISE)
        wanted = max(0, round((passes + fused) * steps / self.steps) - fused)
        rest = [kind for kind in self.kinds if kind is not StepKind.DENOISE]
        at = self._denoising
        return (*rest[:at], *(StepKind.DENOISE,) * wanted, *rest[at:])

    @property
    def _denoising(self) -> int:
        """Where passes stand among the other steps: where they are, or behind the fused one."""
        if StepKind.DENOISE in self.kinds:
            return self.kinds.index(StepKind.DENOISE)
        return self.kinds.index(StepKind.COMMIT_DENOISE) + 1 if StepKind.COMMIT_DENOISE in self.kinds else 0

    def init(self, ask: Ask[SimulatedCarry]) -> SimulatedState:
        return SimulatedState(ask.seed, ask.chunk, ask.carry is None, self.chunk(ask.steps))

    def next(self, state: SimulatedState) -> WorkPlan[SimulatedRow] | Done:
        if state.done == len(state.kinds):
            return Done()
        kind = state.kinds[state.done]
        commit = COMMITS.get(kind, Commit.NONE)
        if commit is Commit.PREVIOUS and state.opens:
            commit = Commit.NONE  # a world's first chunk has none before it
        return WorkPlan(kind, (1,), SimulatedRow(state.seed, state.chunk, state.done), commit)

    def advance(self, state: SimulatedState, result: object) -> SimulatedState:
        return msgspec.structs.replace(state, done=state.done + 1)

    def finalize(self, state: SimulatedState) -> Outcome[SimulatedCarry]:
        black = np.broadcast_to(np.uint8(0), self.frame.shape(state.opens))
        return Outcome(black, SimulatedCarry(state.chunk), Latents.of(np.array([state.chunk])))

    def early_carry(self, state: SimulatedState) -> SimulatedCarry:
        return SimulatedCarry(state.chunk)

    def rebase(self, state: SimulatedState, carry: SimulatedCarry) -> SimulatedState:
        return state


class SimulatedRuntime:
    """A `Runtime`, and the bytes of a slot for who suspends: there are none."""

    def allocate(self, slots: int) -> None: ...

    def reserve(self, slots: int) -> None: ...

    def clear_entry(self, slot: int, entry: int) -> None: ...

    def execute(
        self, kind: StepKind, rows: Sequence[SimulatedRow], views: Sequence[CacheView | None]
    ) -> list[SimulatedRow]:
        return [*rows]

    def encode_prompt(self, text: str) -> object:
        return text

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[SimulatedRow, CacheView | None]]:
        return [(SimulatedRow(0, row, 0), None) for row in range(count)]

    def read_entry(self, slot: int, entry: int) -> bytes:
        return b""

    def write_entry(self, slot: int, entry: int, data: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class SimulatedComponents:
    """A `ComponentWeights` of the footprint's parts: their bytes are counted, and there are none."""

    sizes: dict[str, int]
    prompts: tuple[str, ...] = ()
    on_gpu: bool = False

    def buffer(self, size: int) -> HostBytes:
        return np.broadcast_to(np.uint8(0), (size,))

    def read(self, component: str, start: int, into: HostBytes) -> None: ...

    def drop(self, component: str) -> None: ...

    def write(self, component: str, start: int, data: HostBytes) -> None: ...


def _components(footprint: Footprint | None) -> SimulatedComponents | None:
    if footprint is None:
        return None
    sizes = {part.name: part.weight_bytes for part in footprint.parts}
    return SimulatedComponents(sizes, tuple(name for name in sizes if name.startswith("text")))


def simulated(card: ModelCard, kinds: Sequence[StepKind], footprint: Footprint | None = None) -> LoadedCard:
    """The card, to be run without weights: its main loop, whose chunk takes these steps at the recipe's default."""
    runtime, choice = SimulatedRuntime(), card.recipe.default
    loop = SimulatedLoop(card.frame, tuple(kinds), choice.steps)
    offered = tuple(dict.fromkeys(kind for steps in card.recipe.steps_allowed() for kind in loop.chunk(steps)))
    main = replace(card.loops[0], steps=offered)
    program = card.program if len(card.loops) == 1 else realtime(loop=main.name)
    alone = replace(card, loops=(main,), program=program)
    loops = {main.name: loop}
    slab = None if card.cache is None else runtime
    made = alone, choice, "simulated", loops, runtime, SimulatedCarry, slab
    return LoadedCard(*made, footprint=footprint, components=_components(footprint))
