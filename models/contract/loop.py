"""Driven loops: a model says what its next step is, the runtime decides when, where and with whom it runs.

    state = loop.init(ask)
    while not isinstance(plan := loop.next(state), Done):
        result = await execute(plan)
        state = loop.advance(state, result)
    outcome = loop.finalize(state)

A loop is a stateless object: everything lives in its LoopState (a `msgspec.Struct`, so it serializes through
`models/shared/serial.py`). The cache is not in the state: the engine hands each row the `CacheView` of its slot.

A card may have several loops on one resident instance. The main one, a `ChunkLoop`, makes frames; a `PromptLoop` writes
the text of the next prompt meanwhile. Each has steps of its own in the same queue.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar, runtime_checkable

import msgspec
import numpy as np
import numpy.typing as npt

from .cache import CacheView
from .conditions import Conditions
from .latents import Latents

CHUNK_ROLLOUT = "chunk_rollout"
"""The usual name of a main loop."""


class StepKind(StrEnum):
    """The smallest schedulable actions; indivisible.

    `preview`: what a result will look like, made on the way. `token`: one token of a text. Two are the engine's own:
    `cache_io`, cache entries to and from bytes, and `weights_io`, a slice of a card's weights to or from the host.
    """

    PROMPT_ENCODE = "prompt_encode"
    ENCODE = "encode"
    RECACHE = "recache"
    DENOISE = "denoise"
    COMMIT = "commit"
    COMMIT_DENOISE = "commit_denoise"
    DECODE = "decode"
    PREVIEW = "preview"
    TOKEN = "token"
    CACHE_IO = "cache_io"
    WEIGHTS_IO = "weights_io"


class Commit(StrEnum):
    """To which chunk a step's staged cache write belongs.

    NONE: nothing the step writes outlives the chunk. CHUNK: it is committed when this chunk finalizes. PREVIOUS: it
    belongs to the chunk before (a fused pass) and is committed at this step's boundary, so it stays when this chunk is
    cancelled.
    """

    NONE = "none"
    CHUNK = "chunk"
    PREVIOUS = "previous"


Row = TypeVar("Row")
Result = TypeVar("Result")
Result_contra = TypeVar("Result_contra", contravariant=True)
State = TypeVar("State")
Carry = TypeVar("Carry")
AskT_contra = TypeVar("AskT_contra", contravariant=True)
Made_co = TypeVar("Made_co", covariant=True)
State_contra = TypeVar("State_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class WorkPlan(Generic[Row]):
    """One step. Rows of equal (card, loop, kind, shape, precision) may run in one batch.

    `row` is the family's own type. `rebuilt`: this step fills the first so many of its view's `spare` entries; they
    replace the committed entries beyond the sink when the chunk is finalized, and are forgotten when it is cancelled.
    """

    kind: StepKind
    shape: tuple[int, ...]
    row: Row
    commit: Commit = Commit.NONE
    rebuilt: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """The loop has nothing left to do: finalize it."""


class Committed(msgspec.Struct, frozen=True):
    """Result of a step that only writes: its entries are staged in the slab, nothing comes back."""


@dataclass(frozen=True, slots=True)
class Ask(Generic[Carry]):
    """What one chunk starts from. Noise may depend on (seed, branch, chunk, step) alone.

    `features`: (embedding, weight) per prompt share, embeddings as the family's prompt_encode step returned them.
    `carry`: what the previous chunk's `Outcome` handed on; None at the start of a world or after a reset.
    `committed`: chunks whose cache write is committed in this session's slot since its last reset.
    `first_frames_FHWC`: frames the world starts from (one image, or the end of a video), uint8 RGB of the card's size;
    read by the first chunk alone, and only by cards whose loops have an ENCODE step. `written`: embedding of the text
    that the card's prompt loop wrote last; None where there is none, or none yet.
    """

    seed: int
    branch: int
    chunk: int
    steps: int
    conditions: Conditions
    features: tuple[tuple[object, float], ...]
    carry: Carry | None
    committed: int
    first_frames_FHWC: npt.NDArray[np.uint8] | None = None
    written: object | None = None


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Carry]):
    """A finished chunk: frames as the card's `FrameSpec.shape` says, the carry of the next ask, what it is known by."""

    frames: npt.NDArray[np.uint8]
    carry: Carry
    latents: Latents

    @property
    def digest(self) -> str:
        """For replay: it does not depend on what pixels the latents become."""
        return self.latents.digest


@dataclass(frozen=True, slots=True)
class Preview:
    """A part of a chunk's result, shown before the loop is done; no part of its digest.

    `frames`: uint8, each as the card's `FrameSpec.each` says; the first of them stands for frame `first` of the chunk.
    `done`: the share of the loop's steps that are over, 0 to 1.
    """

    frames: npt.NDArray[np.uint8]
    first: int
    done: float


@dataclass(frozen=True, slots=True)
class PromptAsk(Generic[Carry]):
    """What one run of a `PromptLoop` starts from. `run` counts its runs in this world.

    `carry`: of its run before, None at the start. `seen`: the main loop's carry where this run starts, None at the
    start; it may be an early one, so nothing may be read of it that only pictures tell.
    """

    seed: int
    branch: int
    run: int
    carry: Carry | None
    seen: object


@dataclass(frozen=True, slots=True)
class PromptOutcome(Generic[Carry]):
    """A text for the prompt encoder, the carry of the next run, a digest for replay."""

    text: str
    carry: Carry
    digest: str


class Loop(Protocol[AskT_contra, State, Row, Result_contra, Made_co]):
    """Any loop: a stateless object that says what its next step is."""

    def init(self, ask: AskT_contra) -> State: ...

    def next(self, state: State) -> WorkPlan[Row] | Done: ...

    def advance(self, state: State, result: Result_contra) -> State: ...

    def finalize(self, state: State) -> Made_co: ...


class ChunkLoop(
    Loop[Ask[Carry], State, Row, Result_contra, Outcome[Carry]], Protocol[State, Row, Result_contra, Carry]
):
    """The main loop of a card: one run of it makes one chunk."""

    def early_carry(self, state: State) -> Carry | None:
        """Carry for the next chunk before this one is decoded; asked before a DECODE step.

        Decoder state in it is stale until `rebase`. None: the next chunk cannot begin yet.
        """
        ...

    def rebase(self, state: State, carry: Carry) -> State:
        """Replace what was stale in a chunk that began from `early_carry`; asked before its own DECODE step.

        `carry`: of the chunk before, as that finished.
        """
        ...


class PromptLoop(
    Loop[PromptAsk[Carry], State, Row, Result_contra, PromptOutcome[Carry]],
    Protocol[State, Row, Result_contra, Carry],
):
    """A loop beside the main one that writes the next prompt. Its steps commit nothing and see no cache."""


@runtime_checkable
class Previews(Protocol[State_contra]):
    """A chunk loop that shows parts of its result before it is done."""

    def preview(self, state: State_contra) -> Preview | None:
        """Asked after each step: what can be shown now that could not be shown before that step."""
        ...


class Runtime(Protocol[Row, Result]):
    """A card's weights on one device: what a step is. Called on the device's thread only."""

    def allocate(self, slots: int) -> None:
        """Make the slab for that many sessions (card.cache bytes each); called once before any step."""
        ...

    def execute(self, kind: StepKind, rows: Sequence[Row], views: Sequence[CacheView | None]) -> list[Result]:
        """Run one batched step; row i reads `views[i]` and stages into its `staged` entry alone.

        A row's result does not depend on its neighbours. Raises only for faults of the whole batch.
        """
        ...

    def encode_prompt(self, text: str) -> object:
        """Embedding of one text: the body of the prompt_encode step."""
        ...

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[Row, CacheView | None]]:
        """`count` rows of representative work for pricing a step kind at warm-up, on slots 0..count-1."""
        ...
