"""The Matrix-Game 2.0 cards: sizes, the three modes' controls, and the `ModelCard` each makes. No tensor library.

Sizes are those of the published configurations of Skywork/Matrix-Game-2.0. `local` counts latent frames that a frame
sees, those of its own chunk included: 6, or 4 in the driving mode.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from ..contract.cache import CacheSpec
from ..contract.card import ComponentSpec, Control, FrameSpec, LoopSpec, ModelCard, Parity
from ..contract.loop import StepKind
from ..contract.recipe import Method, Precision, RecipeSpec, RuntimeChoice
from ..shared.video.vae_footprint import VaeSizes
from . import footprint

SAMPLER = "renoise"
STEPS, SHIFT = (1000, 666, 333), 5.0
LICENCE = "MIT"
RING = 2  # entries of a slot: the chunk before, the one under way


class Mode(StrEnum):
    """What the keys mean. UNIVERSAL: walk and look. GTA: drive. TEMPLE_RUN: one of seven moves, no mouse."""

    UNIVERSAL = "universal"
    GTA = "gta"
    TEMPLE_RUN = "temple_run"


@dataclass(frozen=True, slots=True)
class MatrixGameSpec:
    """One card. `condition_frames`: latents of the opening picture followed by nothing, until they stand still."""

    name: str
    title: str
    mode: Mode
    keys: int
    local: int = 6
    dim: int = 1536
    heads: int = 12
    layers: int = 30
    ffn: int = 8960
    freq_dim: int = 256
    channels: int = 16
    rows: int = 44
    columns: int = 80
    action_layers: int = 15
    action_heads: int = 16
    action_width: int = 1024
    action_hidden: int = 128
    action_time_width: int = 8
    image_width: int = 1280
    image_tokens: int = 257
    condition_frames: int = 30
    chunk: int = 3
    vae: VaeSizes = field(default_factory=VaeSizes)
    fps: int = 25
    scale: int = 1
    random: bool = False

    def __post_init__(self) -> None:
        if not self.chunk < self.local <= 2 * self.chunk:
            raise ValueError(f"a frame sees its chunk of {self.chunk} and part of the one before: local {self.local}")

    @property
    def mouse(self) -> bool:
        return self.mode is not Mode.TEMPLE_RUN

    @property
    def tokens(self) -> int:
        return self.rows // 2 * (self.columns // 2)

    @property
    def past(self) -> int:
        """Latent frames seen before the chunk; they are the last ones of the chunk before."""
        return self.local - self.chunk


def universal() -> MatrixGameSpec:
    return MatrixGameSpec("matrix-game-2-universal", "Matrix-Game 2.0", Mode.UNIVERSAL, keys=4)


def gta() -> MatrixGameSpec:
    return replace(
        universal(), name="matrix-game-2-gta", title="Matrix-Game 2.0: driving", mode=Mode.GTA, keys=2, local=4
    )


def temple_run() -> MatrixGameSpec:
    return replace(
        universal(), name="matrix-game-2-temple-run", title="Matrix-Game 2.0: run", mode=Mode.TEMPLE_RUN, keys=7
    )


def tiny() -> MatrixGameSpec:
    return replace(
        universal(),
        name="matrix-game-tiny-random",
        title="Matrix-Game, tiny and random",
        dim=32,
        heads=2,
        layers=3,
        ffn=48,
        freq_dim=32,
        rows=8,
        columns=12,
        action_layers=2,
        action_heads=2,
        action_width=24,
        action_hidden=8,
        action_time_width=4,
        image_width=16,
        image_tokens=5,
        condition_frames=6,
        vae=VaeSizes(4, (1, 2, 2, 2), 1),
        scale=4,
        random=True,
    )


SPECS = {spec.name: spec for spec in (universal(), gta(), temple_run(), tiny())}

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
    )
