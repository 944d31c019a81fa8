"""ModelCard: one versioned, typed object that says what a model is, how it was made and what it owes.

Pure data: no tensors, no loading. `models/catalog.py` lists the cards; a family folder builds them.
"""

from dataclasses import dataclass

from .cache import CacheSpec
from .loop import StepKind
from .program import REALTIME, Program
from .recipe import RecipeSpec


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """A part with weights: `file` is relative to the family's weights folder ('' = no weights)."""

    name: str
    role: str
    parameters: int
    file: str
    licence: str


@dataclass(frozen=True, slots=True)
class LoopSpec:
    """A loop the card offers and the step kinds it may ask for, in order of first use."""

    name: str
    steps: tuple[StepKind, ...]


@dataclass(frozen=True, slots=True)
class FrameSpec:
    """Model frames are width x height, shown at `scale` times that; a chunk makes `per_chunk` of them.

    `smooth`: enlarged with a bicubic filter; False keeps hard pixel edges.
    `opening`: frames of a world's first chunk where it differs (causal decoders make 9, then 12); 0 = per_chunk.
    """

    width: int
    height: int
    scale: int
    fps: int
    per_chunk: int
    smooth: bool = True
    opening: int = 0

    def frames(self, opens: bool) -> int:
        """Frames of one chunk; `opens`: it is the first one of a world (its ask has no carry)."""
        return self.opening if opens and self.opening else self.per_chunk


@dataclass(frozen=True, slots=True)
class Control:
    """One control: its name in receipts and the KeyboardEvent.code values that press it."""

    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parity:
    """What the card owes: exact = batched and replayed results are bit-identical to solo runs, else max abs error."""

    exact: bool
    tolerance: float


@dataclass(frozen=True, slots=True)
class ModelCard:
    """See the module docstring. `suggestions` are prompts the page offers; the first one starts a world.

    `drawn`: a family's tiny card. Its weights are drawn from a seed: it runs anywhere and shows noise.
    """

    name: str
    version: str
    family: str
    title: str
    components: tuple[ComponentSpec, ...]
    loops: tuple[LoopSpec, ...]
    recipe: RecipeSpec
    parity: Parity
    frame: FrameSpec
    controls: tuple[Control, ...]
    cache: CacheSpec | None
    suggestions: tuple[str, ...]
    program: Program = REALTIME
    drawn: bool = False
