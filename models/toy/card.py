"""The toy cards: a world of small integers whose every step shows in the result, for tests and for measuring transport.

`ToySpec` sets what a step costs and how frames are paced; nothing else about the card can change.
"""

from dataclasses import replace

import msgspec

from ..contract.cache import CacheSpec
from ..contract.card import ComponentSpec, Control, FrameSpec, LoopSpec, ModelCard, Parity
from ..contract.loop import StepKind
from ..contract.placement import Payload, narrated, realtime
from ..contract.recipe import Method, Precision, RecipeSpec, RuntimeChoice

CHANNELS = 8
WINDOW = 4
WIDTH, HEIGHT, SCALE = 160, 96, 4


class ToySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`step_seconds`: what one batch of a denoise, commit or decode step takes, whatever its rows.

    `sleeps`: the runtime spends that time on the device's thread; False where a fake device keeps virtual time.
    """

    step_seconds: float = 0.0
    fps: int = 24
    per_chunk: int = 1
    sleeps: bool = True

    def __post_init__(self) -> None:
        if self.step_seconds < 0 or self.fps < 1 or self.per_chunk < 1:
            raise ValueError(f"step_seconds >= 0, fps >= 1 and per_chunk >= 1 are needed, got {self}")


RECIPE = RecipeSpec(
    name="toy-1",
    sampler="integer",
    sigmas=((1.0,), (1.0, 0.5), (1.0, 0.67, 0.33), (1.0, 0.75, 0.5, 0.25)),
    precisions=(Precision.INT,),
    default=RuntimeChoice("integer", 2, Precision.INT),
    parents=(),
    data="none",
    command="none: its arithmetic is written down, not trained",
    method=Method.WRITTEN,
)


CLIP_STEPS, CLIP_FRAMES, PREVIEW_EVERY = 50, 12, 10
CLIP_RECIPE = replace(
    RECIPE,
    name="toy-clip-1",
    sigmas=(tuple(1 - step / CLIP_STEPS for step in range(CLIP_STEPS)),),
    default=RuntimeChoice("integer", CLIP_STEPS, Precision.INT),
    assumes_loop="diffusion_denoise",
)
NARRATOR, NARRATED_EVERY = "narrator", 4


def toy_card(spec: ToySpec) -> ModelCard:
    return ModelCard(
        name="toy",
        version="1",
        family="toy",
        title="Toy: a ship of small integers",
        about="A little ship over a sea of numbers: a world that costs nothing, to try a server with.",
        components=(ComponentSpec("arithmetic", "transformer", 0, "", "Apache-2.0"),),
        loops=(LoopSpec("chunk_rollout", (StepKind.DENOISE, StepKind.COMMIT, StepKind.DECODE)),),
        recipe=RECIPE,
        parity=Parity(exact=True, tolerance=0.0),
        frame=FrameSpec(WIDTH, HEIGHT, SCALE, spec.fps, spec.per_chunk, smooth=False),
        controls=(
            Control("left", ("ArrowLeft", "KeyA"), analog=True),
            Control("right", ("ArrowRight", "KeyD"), analog=True),
            Control("up", ("ArrowUp", "KeyW"), analog=True),
            Control("down", ("ArrowDown", "KeyS"), analog=True),
        ),
        cache=CacheSpec(ring=WINDOW + 1, bytes_per_entry=CHANNELS * 8),
        suggestions=("a calm blue sea", "a red desert", "a green nebula", "violet dusk"),
    )


def narrated_card(spec: ToySpec) -> ModelCard:
    """The toy with a second loop that writes a prompt every four chunks."""
    card = toy_card(spec)
    return replace(
        card,
        name="toy-narrated",
        title="Toy with a narrator: a second loop writes what comes next",
        loops=(*card.loops, LoopSpec(NARRATOR, (StepKind.TOKEN,), makes=Payload.TEXT)),
        program=narrated(NARRATOR, NARRATED_EVERY),
    )


def duo_card(spec: ToySpec) -> ModelCard:
    """The toy with two ships, one for each of two players."""
    return replace(toy_card(spec), name="toy-duo", title="Toy for two: a ship each", players=2)


def clip_card(spec: ToySpec) -> ModelCard:
    """Whole clips of 50 steps that show parts of themselves on the way."""
    return replace(
        toy_card(spec),
        name="toy-clip",
        title="Toy clips: fifty steps, seen early",
        loops=(LoopSpec("diffusion_denoise", (StepKind.DENOISE, StepKind.PREVIEW, StepKind.DECODE)),),
        recipe=CLIP_RECIPE,
        frame=FrameSpec(WIDTH, HEIGHT, SCALE, spec.fps, CLIP_FRAMES, smooth=False),
        controls=(),
        cache=None,
        program=realtime(loop="diffusion_denoise"),
    )
