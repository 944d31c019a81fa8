"""ModelCard: one versioned, typed object that says what a model is, how it was made and what it owes.

Pure data: no tensors, no loading. `models/catalog.py` lists the cards; a family folder builds them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from .cache import CacheSpec
from .faults import CardFault
from .loop import StepKind
from .placement import INPUT, OUTPUT, REALTIME, Payload, Program
from .recipe import RecipeSpec

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
PROMPTS_MAX = 4
PLAYERS_MAX = 8
"""Texts that any prompt may mix; a blend of two such mixes has twice as many shares."""


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
    """A loop the card offers and the step kinds it may ask for, in order of first use. `makes`: frames or text."""

    name: str
    steps: tuple[StepKind, ...]
    makes: Payload = Payload.FRAMES


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
    """One control: its name in receipts and the KeyboardEvent.code values that press it.

    `analog`: the world knows what half of it is; else conditions hold 0 or 1.
    """

    name: str
    keys: tuple[str, ...]
    analog: bool = False


@dataclass(frozen=True, slots=True)
class Parity:
    """What the card owes: exact = batched and replayed results are bit-identical to solo runs, else max abs error."""

    exact: bool
    tolerance: float


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What goes into a session of a card, what comes out, and whether it shows parts of a chunk before that is done."""

    takes: tuple[Payload, ...]
    gives: tuple[Payload, ...]
    previews: bool


@dataclass(frozen=True, slots=True)
class ModelCard:
    """See the module docstring. `suggestions` are prompts the page offers; the first one starts a world.

    `loops`: the first one is the main loop, which makes frames. `random_weights`: a family's tiny card. Its weights are
    drawn from a seed: it runs anywhere and shows noise. `about`: one sentence for people. `pointer`: conditions may
    hold motion. `prompt_chars`: code points of a prompt. `prompts_max`: texts that one prompt may mix. `players`: so
    many have these controls, each their own (`Conditions.others`). Raises `CardFault` with the field that cannot be
    right.
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
    random_weights: bool = False
    about: str = ""
    pointer: bool = False
    prompt_chars: int = 500
    prompts_max: int = PROMPTS_MAX
    players: int = 1

    def __post_init__(self) -> None:
        check_card(self)

    @property
    def main_loop(self) -> str:
        return self.loops[0].name

    @property
    def prompt_loop(self) -> str | None:
        """The loop that writes prompts beside the main one."""
        return next((loop.name for loop in self.loops[1:] if loop.makes is Payload.TEXT), None)

    @property
    def prompt_every(self) -> int:
        """The prompt loop runs once in so many chunks; what a run writes steers from the next run's first chunk on."""
        return next((node.every for node in self.program.loops if node.name == self.prompt_loop), 0)

    @property
    def capabilities(self) -> Capabilities:
        takes = self.program.payloads(source=INPUT)
        absent = {Payload.CONTROLS} if not self.controls else set()
        if not self.asks(StepKind.ENCODE):
            absent.add(Payload.FIRST_FRAMES)
        return Capabilities(
            takes=tuple(payload for payload in takes if payload not in absent),
            gives=self.program.payloads(target=OUTPUT),
            previews=self.asks(StepKind.PREVIEW),
        )

    def asks(self, kind: StepKind) -> bool:
        """Whether any of its loops may ask for such a step."""
        return any(kind in loop.steps for loop in self.loops)


def check_card(card: ModelCard) -> None:
    """Raise `CardFault` for the first field that cannot be right, `RecipeMismatch` for a loop not the recipe's."""
    for field, sound, problem in _judged(card):
        if not sound:
            raise CardFault(card.name, field, problem)
    card.recipe.check_loop(card.main_loop)


def _judged(card: ModelCard) -> Iterator[tuple[str, bool, str]]:
    """Field, whether it may be so, and what is wrong otherwise."""
    frame, parity, loops = card.frame, card.parity, [loop.name for loop in card.loops]
    yield (
        "name",
        _NAME.fullmatch(card.name) is not None,
        f"small letters, digits, '.', '-' and '_' make a name, got {card.name!r}",
    )
    for field, text in (("version", card.version), ("family", card.family), ("title", card.title)):
        yield field, bool(text.strip()), "it is empty"
    yield "loops", bool(loops), "a card has at least one loop"
    yield "loops", _once(loops), f"each has a name of its own, got {loops}"
    yield "loops", all(loop.steps for loop in card.loops), "a loop has steps"
    yield "loops", card.loops[0].makes is Payload.FRAMES, "the first loop makes frames"
    yield "loops", [loop.makes for loop in card.loops[1:]] in ([], [Payload.TEXT]), "one more loop may make text"
    yield (
        "parity",
        (parity.tolerance == 0) == parity.exact and parity.tolerance >= 0,
        f"exact means tolerance 0: {parity}",
    )
    sizes = (frame.width, frame.height, frame.scale, frame.fps, frame.per_chunk)
    yield "frame", min(sizes) >= 1 and frame.opening >= 0, f"sizes, rate and counts are 1 or more: {frame}"
    yield "frame", frame.shown_width % 2 == 0 == frame.shown_height % 2, f"shown sizes are even: {frame}"
    keys = [key for control in card.controls for key in control.keys]
    yield "controls", _once([control.name for control in card.controls]), "each has a name of its own"
    yield "controls", _once(keys), f"a key presses one control: {keys}"
    yield "players", 1 <= card.players <= PLAYERS_MAX, f"1 to {PLAYERS_MAX}, not {card.players}"
    yield "suggestions", bool(card.suggestions), "a world starts with the first one, there is none"
    yield "suggestions", _once(card.suggestions) and all(map(str.strip, card.suggestions)), "each is a text of its own"
    yield "prompts_max", 1 <= card.prompts_max <= PROMPTS_MAX, f"1 to {PROMPTS_MAX}, not {card.prompts_max}"
    writes = [kind for kind in (StepKind.COMMIT, StepKind.COMMIT_DENOISE, StepKind.RECACHE) if card.asks(kind)]
    yield "cache", card.cache is not None or not writes, f"{', '.join(writes)} write a cache, the card has none"
    nodes = [node.name for node in card.program.loops]
    yield "program", sorted(nodes) == sorted(loops), f"its loops are {nodes}, the card's {loops}"


def _once(names: Sequence[str]) -> bool:
    return len(set(names)) == len(names)
