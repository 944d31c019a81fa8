"""ModelCard: one versioned, typed object that says what a model is, how it was made and what it owes.

Pure data: no tensors, no loading. `models/catalog.py` lists the cards; a family folder builds them.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from .cache import CacheSpec
from .loop import StepKind
from .placement import REALTIME, Program
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


class Pixels(StrEnum):
    """What a frame is when a chunk hands it on, uint8.

    rgb   [height, width, 3], the model's size: it is enlarged when it is encoded
    i420  [3/2 H, W], the shown size: H rows of luma, then Cb and Cr of H/2 x W/2; BT.709, limited range
    """

    RGB = "rgb"
    I420 = "i420"


@dataclass(frozen=True, slots=True)
class FrameSpec:
    """Model frames are width x height, shown at `scale` times that; a chunk makes `per_chunk` of them.

    `smooth`: enlarged with a bicubic filter; False keeps hard pixel edges.
    `opening`: frames of a world's first chunk where it differs (causal decoders make 9, then 12); 0 = per_chunk.
    `pixels`: a card's data says RGB; loading it may find a device on which I420 is made at once.
    """

    width: int
    height: int
    scale: int
    fps: int
    per_chunk: int
    smooth: bool = True
    opening: int = 0
    pixels: Pixels = Pixels.RGB

    def frames(self, opens: bool) -> int:
        """Frames of one chunk; `opens`: it is the first one of a world (its ask has no carry)."""
        return self.opening if opens and self.opening else self.per_chunk

    @property
    def shown_width(self) -> int:
        return self.width * self.scale

    @property
    def shown_height(self) -> int:
        return self.height * self.scale

    def shape(self, opens: bool) -> tuple[int, ...]:
        """Of the array that holds the frames of one chunk."""
        return self.frames(opens), *self.each

    @property
    def each(self) -> tuple[int, ...]:
        """Shape of one frame."""
        match self.pixels:
            case Pixels.RGB:
                return self.height, self.width, 3
            case Pixels.I420:
                return self.shown_height * 3 // 2, self.shown_width
            case _:
                assert_never(self.pixels)


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
