"""The Wan cards: sizes and settings by name, and the `ModelCard` each of them makes.

Four public sets of weights and two tiny ones with random weights, which run anywhere and look like noise.
"""

from dataclasses import replace

from ..contract.cache import CacheSpec
from ..contract.card import ComponentSpec, FrameSpec, LoopSpec, ModelCard, Parity
from ..contract.loop import StepKind
from ..contract.placement import realtime
from ..contract.recipe import Method, Precision, RecipeSpec, RuntimeChoice
from ..shared.video.vae_footprint import VaeSizes
from . import footprint
from .spec import Clip, Decoder, Positions, Rollout, WanShape, WanSpec, few_steps, many_steps, pixel_frames

RENOISE, EULER, UNIPC = "renoise", "flow_euler", "unipc"
CODE_AND_WAN_LICENCE = "Apache-2.0"

SHAPE_1B = WanShape()
SHAPE_14B = WanShape(dim=5120, heads=40, layers=40, ffn=13824)
NARROW = (
    (Precision.FP8, 0.2),
    (Precision.FP32_KV8, 0.01),
    (Precision.BF16_KV8, 0.1),
    (Precision.FP8_KV8, 0.2),
)
COMPILED = 0.02
FOUR_STEPS = few_steps((1000, 750, 500, 250), shift=5.0)


def self_forcing() -> WanSpec:
    """4 steps, 3 latent frames a chunk, a rolling window of 21."""
    return WanSpec("self-forcing-1.3b", "Self-Forcing 1.3B", SHAPE_1B, VaeSizes(), Rollout(FOUR_STEPS))


def longlive() -> WanSpec:
    """Window 12 with a sink of 3 that stays for ever, and a rebuilt cache when the prompt changes."""
    plan = Rollout(FOUR_STEPS, window=12, sink=3, recache=True, recache_frames=12)
    return replace(self_forcing(), name="longlive-1.3b", title="LongLive 1.3B", plan=plan, lora_rank=256)


def krea() -> WanSpec:
    """14B; nothing is committed: three clean latent frames are passed anew before every chunk."""
    sigmas = tuple(step / 1000 for step in (1000, 937, 833, 625))
    plan = Rollout(sigmas, window=6, positions=Positions.WINDOW, context=3)
    return WanSpec("krea-realtime-14b", "Krea Realtime 14B", SHAPE_14B, VaeSizes(), plan)


def wan_t2v() -> WanSpec:
    """The undistilled original: clips of 81 frames in tens of steps, with guidance."""
    return WanSpec("wan-t2v-1.3b", "Wan 2.1 T2V 1.3B (clips)", SHAPE_1B, VaeSizes(), Clip())


TINY_SHAPE = WanShape(dim=48, heads=4, layers=2, ffn=96, text_dim=32, text_length=8, freq_dim=32, rows=6, columns=8)
TINY_VAE = VaeSizes(width=4, multipliers=(1, 2, 2, 2), blocks=1)


def tiny() -> WanSpec:
    """LongLive's rollout on a drawn network of 64 x 48 pixels."""
    return replace(
        longlive(),
        name="wan-tiny-random",
        title="Wan, tiny and random",
        shape=TINY_SHAPE,
        vae=TINY_VAE,
        decoder=Decoder.TINY,
        tiny_widths=(16, 12, 8, 8),
        scale=8,
        random=True,
        lora_rank=0,
    )


def tiny_clip() -> WanSpec:
    """Whole clips of 9 frames on the same drawn network."""
    plan = Clip(frames=3, steps=(8, 4))
    return replace(tiny(), name="wan-tiny-clip", title="Wan, tiny and random (clips)", plan=plan)


SPECS = {spec.name: spec for spec in (self_forcing(), longlive(), krea(), wan_t2v(), tiny(), tiny_clip())}


def wan_card(spec: WanSpec) -> ModelCard:
    parts = {part.name: part.parameters for part in footprint.parts(spec)}
    licence = "CC-BY-NC-SA-4.0" if spec.name.startswith("krea") else CODE_AND_WAN_LICENCE
    return ModelCard(
        name=spec.name,
        version="1",
        family="wan",
        title=spec.title,
        components=tuple(
            ComponentSpec(name, role, parts[name], "", licence) for name, role in _ROLES.items() if parts.get(name)
        ),
        loops=(_loop(spec),),
        recipe=_recipe(spec),
        parity=Parity(exact=spec.random, tolerance=0.0 if spec.random else 0.02),
        frame=frame_of(spec),
        controls=(),
        about="A film without an end: what you write is what happens next.",
        cache=cache_of(spec, Precision.FP32 if spec.random else Precision.BF16),
        suggestions=_SUGGESTIONS,
        program=realtime(loop=_loop(spec).name),
        random_weights=spec.random,
    )


def frame_of(spec: WanSpec) -> FrameSpec:
    opening = pixel_frames(spec.chunk, opens=True)
    chunk = pixel_frames(spec.chunk, opens=isinstance(spec.plan, Clip))
    return FrameSpec(spec.width, spec.height, spec.scale, spec.fps, chunk, opening=opening)


_ROLES = {"transformer": "transformer", "vae": "autoencoder", "tiny_decoder": "decoder", "text": "text encoder"}
_SUGGESTIONS = (
    "a red fox trots through fresh snow at dawn, cinematic",
    "the same fox stops and looks into the camera",
    "a lighthouse in a storm, waves crash over the rocks",
    "slow flight over a city of glass at night",
)


def _loop(spec: WanSpec) -> LoopSpec:
    if isinstance(spec.plan, Clip):
        return LoopSpec("diffusion_denoise", (StepKind.DENOISE, StepKind.PREVIEW, StepKind.DECODE))
    rebuilds = (StepKind.RECACHE,) if spec.plan.kept_frames else ()
    commits = () if spec.plan.context else (StepKind.COMMIT,)
    return LoopSpec("chunk_rollout", (StepKind.ENCODE, *rebuilds, StepKind.DENOISE, *commits, StepKind.DECODE))


def _method(spec: WanSpec) -> Method:
    """Clips are made by flow-matching weights, rollouts by weights distilled for the few steps of their plan."""
    if spec.random:
        return Method.RANDOM
    return Method.FLOW if isinstance(spec.plan, Clip) else Method.DISTILLED


def _recipe(spec: WanSpec) -> RecipeSpec:
    precision = Precision.FP32 if spec.random else Precision.BF16
    if isinstance(spec.plan, Clip):
        sampler, steps = UNIPC, spec.plan.steps[0]
        sigmas = tuple(many_steps(count, spec.plan.shift) for count in spec.plan.steps)
        parents: tuple[str, ...] = ()
    else:
        sampler, steps, sigmas, parents = RENOISE, len(spec.plan.sigmas), (spec.plan.sigmas,), ("Wan2.1-T2V",)
    narrow = NARROW if isinstance(spec.plan, Rollout) else NARROW[:1]
    return RecipeSpec(
        name=spec.name,
        sampler=sampler,
        sigmas=sigmas,
        precisions=(Precision.BF16, Precision.FP32, *(p for p, _ in narrow)),
        default=RuntimeChoice(sampler, steps, precision),
        parents=() if spec.random else parents,
        data="none: weights are drawn from a seed" if spec.random else "as published by its authors",
        command="none" if spec.random else "published weights: `worldroom cards pull " + spec.name + "`",
        method=_method(spec),
        assumes_loop=_loop(spec).name,
        narrow=narrow,
        compiled=COMPILED,
        invariant=True,
        samplers=(EULER,) if isinstance(spec.plan, Clip) else (),
    )


def cache_of(spec: WanSpec, precision: Precision) -> CacheSpec | None:
    """None for clips. Keys and values of 8 bits have a 32-bit scale per token and head."""
    if isinstance(spec.plan, Clip):
        return None
    plan, width, elements = spec.plan, 4 if precision.full else 2, footprint.entry_elements(spec)
    scales = elements // spec.shape.head_width * 4
    return CacheSpec(
        ring=plan.past_chunks + 1 + plan.rebuild,
        bytes_per_entry=elements + scales if precision.narrow_kv else elements * width,
        sink=plan.sink_chunks,
        rebuild=plan.rebuild,
        carry_bytes=(footprint.decoder_elements(spec) + footprint.carry_elements(spec)) * width,
    )


__all__ = ["CODE_AND_WAN_LICENCE", "SPECS", "Decoder", "wan_card"]
