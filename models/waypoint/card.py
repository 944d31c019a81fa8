"""The `ModelCard` that each Waypoint spec makes. Knows no tensor library."""

from ..contract.cache import CacheSpec
from ..contract.card import ComponentSpec, Control, FrameSpec, LoopSpec, ModelCard, Parity
from ..contract.loop import StepKind
from ..contract.recipe import Method, Precision, RecipeSpec, RuntimeChoice
from .spec import SIGMAS, WaypointSpec

SAMPLER = "flow_euler"
LICENCE = "Apache-2.0"

# Windows virtual-key codes name the buttons: their order in the one-hot vector.
KEYS = (
    (Control("forward", ("KeyW", "ArrowUp")), 0x57),
    (Control("back", ("KeyS", "ArrowDown")), 0x53),
    (Control("left", ("KeyA", "ArrowLeft")), 0x41),
    (Control("right", ("KeyD", "ArrowRight")), 0x44),
    (Control("jump", ("Space",)), 0x20),
    (Control("sprint", ("ShiftLeft",)), 0x10),
    (Control("use", ("KeyE",)), 0x45),
    (Control("scroll up", ("PageUp",)), -1),
    (Control("scroll down", ("PageDown",)), -2),
)


def kv_width(spec: WaypointSpec) -> int:
    return spec.kv_heads * spec.head_width


def waypoint_card(spec: WaypointSpec) -> ModelCard:
    width = 4 if spec.random else 2
    frame = 2 * spec.tokens * kv_width(spec) * width
    near = (spec.layers - len(spec.global_layers)) * frame
    far = len(spec.global_layers) * frame * (spec.distant + 1)
    return ModelCard(
        name=spec.name,
        version="1",
        family="waypoint",
        title=spec.title,
        components=(
            ComponentSpec("transformer", "transformer", 0 if spec.random else 2_300_000_000, "", LICENCE),
            ComponentSpec("autoencoder", "autoencoder", 0, "", LICENCE),
        ),
        loops=(LoopSpec("chunk_rollout", (StepKind.DENOISE, StepKind.COMMIT, StepKind.DECODE)),),
        recipe=_recipe(spec),
        parity=Parity(exact=True, tolerance=0.0),
        frame=FrameSpec(spec.columns * spec.patch, spec.rows * spec.patch, spec.scale, spec.fps, per_chunk=1),
        controls=tuple(control for control, _ in KEYS),
        pointer=True,
        about="Walk through a world of first-person play, with all its keys and the mouse.",
        cache=CacheSpec(ring=spec.local + 1, bytes_per_entry=near, carry_bytes=far),
        suggestions=("a first person view of a forest path", "a neon street in the rain"),
        random_weights=spec.random,
    )


def _recipe(spec: WaypointSpec) -> RecipeSpec:
    precision = Precision.FP32 if spec.random else Precision.BF16
    return RecipeSpec(
        name=spec.name,
        sampler=SAMPLER,
        sigmas=(SIGMAS,),
        precisions=(precision,),
        default=RuntimeChoice(SAMPLER, len(SIGMAS), precision),
        parents=(),
        data="none: weights are drawn from a seed" if spec.random else "as published by its authors",
        command="none" if spec.random else "published weights; not loadable, see models/waypoint/spec.py MISSING",
        method=Method.RANDOM if spec.random else Method.DISTILLED,
        invariant=True,
    )
