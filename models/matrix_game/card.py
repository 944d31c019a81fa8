"""The three modes' controls and the `ModelCard` that each Matrix-Game 2.0 spec makes. No tensor library."""

from ..contract.cache import CacheSpec
from ..contract.card import ComponentSpec, Control, FrameSpec, LoopSpec, ModelCard, Parity
from ..contract.loop import StepKind
from ..contract.recipe import Method, Precision, RecipeSpec, RuntimeChoice
from . import footprint
from .spec import LICENCE, RING, MatrixGameSpec, Mode

SAMPLER = "renoise"
STEPS, SHIFT = (1000, 666, 333), 5.0


_WALK = (
    Control("forward", ("KeyW",)),
    Control("back", ("KeyS",)),
    Control("left", ("KeyA",)),
    Control("right", ("KeyD",)),
    Control("look up", ("KeyI", "ArrowUp"), analog=True),
    Control("look down", ("KeyK", "ArrowDown"), analog=True),
    Control("look left", ("KeyJ", "ArrowLeft"), analog=True),
    Control("look right", ("KeyL", "ArrowRight"), analog=True),
)
_DRIVE = (
    Control("gas", ("KeyW", "ArrowUp")),
    Control("brake", ("KeyS", "ArrowDown")),
    Control("left", ("KeyA", "ArrowLeft"), analog=True),
    Control("right", ("KeyD", "ArrowRight"), analog=True),
)
_RUN = (
    Control("jump", ("KeyW", "ArrowUp")),
    Control("slide", ("KeyS", "ArrowDown")),
    Control("turn left", ("KeyZ",)),
    Control("turn right", ("KeyC",)),
    Control("left", ("KeyA", "ArrowLeft")),
    Control("right", ("KeyD", "ArrowRight")),
)
ABOUT = {
    Mode.UNIVERSAL: "Walk and look around in a world that begins from a picture of yours.",
    Mode.GTA: "Drive through a city that goes on as far as you do.",
    Mode.TEMPLE_RUN: "Run, jump, slide and turn on a path that is made as you run.",
}
CONTROLS = {Mode.UNIVERSAL: _WALK, Mode.GTA: _DRIVE, Mode.TEMPLE_RUN: _RUN}


def matrix_game_card(spec: MatrixGameSpec) -> ModelCard:
    counts = {part.name: part.parameters for part in footprint.parts(spec)}
    width = 4 if spec.random else 2
    frames = 4 * spec.chunk
    return ModelCard(
        name=spec.name,
        version="1",
        family="matrix_game",
        title=spec.title,
        components=(
            ComponentSpec("transformer", "transformer", counts["transformer"], "transformer", LICENCE),
            ComponentSpec("vae", "autoencoder", counts["vae"], "vae", "Apache-2.0"),
            ComponentSpec("image_encoder", "image encoder", counts["image_encoder"], "image_encoder", "MIT"),
        ),
        loops=(LoopSpec("chunk_rollout", (StepKind.ENCODE, StepKind.DENOISE, StepKind.COMMIT, StepKind.DECODE)),),
        recipe=_recipe(spec),
        parity=Parity(exact=True, tolerance=0.0),
        frame=FrameSpec(spec.columns * 8, spec.rows * 8, spec.scale, spec.fps, frames, opening=frames - 3),
        controls=CONTROLS[spec.mode],
        pointer=spec.mode is not Mode.TEMPLE_RUN,
        about=ABOUT[spec.mode],
        cache=CacheSpec(
            ring=RING,
            bytes_per_entry=footprint.entry_elements(spec) * width,
            carry_bytes=footprint.carry_elements(spec) * width,
        ),
        prompts_max=1,
        suggestions=("a meadow under a blue sky", "red rocks at dusk", "a snowy valley"),
        random_weights=spec.random,
    )


def levels() -> tuple[float, ...]:
    """Noise levels of the three steps after the shift: 1, 0.909, 0.714."""
    return tuple(SHIFT * t / 1000 / (1 + (SHIFT - 1) * t / 1000) for t in STEPS)


def _recipe(spec: MatrixGameSpec) -> RecipeSpec:
    precision = Precision.FP32 if spec.random else Precision.BF16
    return RecipeSpec(
        name=spec.name,
        sampler=SAMPLER,
        sigmas=(levels(),),
        precisions=(Precision.FP32,) if spec.random else (Precision.BF16, Precision.FP32),
        default=RuntimeChoice(SAMPLER, len(STEPS), precision),
        parents=() if spec.random else ("Wan2.1",),
        data="none: weights are drawn from a seed" if spec.random else "as published by its authors",
        command="none" if spec.random else f"published weights: `worldroom cards pull {spec.name}`",
        method=Method.RANDOM if spec.random else Method.DISTILLED,
        invariant=True,
    )
