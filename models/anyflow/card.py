"""The `ModelCard` that each AnyFlow FAR spec makes. Knows no tensor library."""

from ..contract.cache import CacheSpec
from ..contract.card import ComponentSpec, FrameSpec, LoopSpec, ModelCard, Parity
from ..contract.loop import StepKind
from ..contract.recipe import Method, Precision, RecipeSpec, RuntimeChoice
from . import footprint
from .spec import LICENCE, AnyFlowSpec

SAMPLER = "flow_map_euler"
STEPS = (1, 2, 4, 8)


def anyflow_card(spec: AnyFlowSpec) -> ModelCard:
    counts = {part.name: part.parameters for part in footprint.parts(spec)}
    licence = "Apache-2.0" if spec.random else LICENCE
    width = 4 if spec.random else 2
    return ModelCard(
        name=spec.name,
        version="1",
        family="anyflow",
        title=spec.title,
        components=(
            ComponentSpec("transformer", "transformer", counts["transformer"], "transformer", licence),
            ComponentSpec("vae", "autoencoder", counts["vae"], "vae", "Apache-2.0"),
            ComponentSpec("text_encoder", "text encoder", counts["text_encoder"], "text_encoder", "Apache-2.0"),
        ),
        loops=(LoopSpec("chunk_rollout", (StepKind.ENCODE, StepKind.DENOISE, StepKind.COMMIT, StepKind.DECODE)),),
        recipe=_recipe(spec),
        parity=Parity(exact=True, tolerance=0.0),
        frame=FrameSpec(spec.columns * 8, spec.rows * 8, spec.scale, spec.fps, 4 * spec.chunk, opening=1),
        controls=(),
        cache=CacheSpec(
            ring=2,
            bytes_per_entry=footprint.entry_elements(spec) * width,
            carry_bytes=footprint.decoder_elements(spec) * width + footprint.carry_elements(spec) * 4,
        ),
        suggestions=(
            "a cat walks across a sunlit lawn",
            "the cat lies down in the shade of a tree",
            "rain falls on a quiet street at night",
        ),
        random_weights=spec.random,
    )


def _recipe(spec: AnyFlowSpec) -> RecipeSpec:
    return RecipeSpec(
        name=spec.name,
        sampler=SAMPLER,
        sigmas=tuple(spec.levels(steps) for steps in STEPS),
        precisions=(Precision.FP32,) if spec.random else (Precision.BF16, Precision.FP32),
        default=RuntimeChoice(SAMPLER, 4, Precision.FP32 if spec.random else Precision.BF16),
        parents=() if spec.random else ("Wan2.1-T2V",),
        data="none: weights are drawn from a seed" if spec.random else "as published by its authors",
        command="none" if spec.random else f"published weights: `worldroom cards pull {spec.name}`",
        method=Method.RANDOM if spec.random else Method.DISTILLED,
        invariant=True,
    )
