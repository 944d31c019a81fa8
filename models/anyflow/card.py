"""The AnyFlow FAR cards: all sizes, the rollout's settings and the `ModelCard` each makes. Knows no tensor library.

Public sizes are those of nvidia/AnyFlow-FAR-Wan2.1-{1.3B,14B}-Diffusers. AnyFlow: 2605.13724, FAR: 2503.19325.
"""

from dataclasses import dataclass, replace

from ..contract.cache import CacheSpec
from ..contract.card import ComponentSpec, FrameSpec, LoopSpec, ModelCard, Parity
from ..contract.loop import StepKind
from ..contract.recipe import Method, Precision, RecipeSpec, RuntimeChoice
from . import footprint

SAMPLER = "flow_map_euler"
STEPS = (1, 2, 4, 8)
LICENCE = "NVIDIA licence of the model page ('other'); not for redistribution"


@dataclass(frozen=True, slots=True)
class AnyFlowSpec:
    """One card. `rows`, `columns`: of a latent frame. `history`: chunks that are remembered, the opening one always.

    The last `full_limit - 1` of them are seen at full resolution, earlier ones at 1/4 of their tokens. A chunk is
    `chunk` latent frames, the opening one a single frame, as the weights were trained (1, 3, 3, ...).
    """

    name: str
    title: str
    heads: int
    head_width: int
    layers: int
    ffn: int
    text_dim: int = 4096
    text_length: int = 512
    freq_dim: int = 256
    channels: int = 16
    rows: int = 60
    columns: int = 104
    vae_width: int = 96
    vae_multipliers: tuple[int, ...] = (1, 2, 4, 4)
    vae_blocks: int = 2
    history: int = 6
    chunk: int = 3
    full_limit: int = 3
    shift: float = 5.0
    fps: int = 16
    scale: int = 1
    random: bool = False

    def __post_init__(self) -> None:
        if self.rows % 4 or self.columns % 4 or self.history <= self.full_limit:
            raise ValueError(f"rows and columns by 4 and a history longer than {self.full_limit} are needed: {self}")

    @property
    def dim(self) -> int:
        return self.heads * self.head_width

    @property
    def tokens(self) -> int:
        """Full tokens of one latent frame; compressed ones are a quarter."""
        return self.rows // 2 * (self.columns // 2)

    @property
    def full_slots(self) -> int:
        """Tokens that one entry's full part has room for."""
        return (self.full_limit - 1) * self.chunk * self.tokens

    @property
    def compressed_slots(self) -> int:
        return (self.history - self.full_limit + 1) * self.chunk * self.tokens // 4

    def levels(self, steps: int) -> tuple[float, ...]:
        """Noise levels of a flow map in that many equal steps, shifted; the last one ends at 0."""
        plain = (1 - i / steps for i in range(steps))
        return tuple(self.shift * s / (1 + (self.shift - 1) * s) for s in plain)


def anyflow_1b() -> AnyFlowSpec:
    return AnyFlowSpec("anyflow-far-1.3b", "AnyFlow FAR 1.3B", heads=12, head_width=128, layers=30, ffn=8960)


def anyflow_14b() -> AnyFlowSpec:
    return replace(
        anyflow_1b(), name="anyflow-far-14b", title="AnyFlow FAR 14B", heads=40, layers=40, ffn=13824
    )  # fmt: skip


def tiny() -> AnyFlowSpec:
    return replace(
        anyflow_1b(),
        name="anyflow-tiny-random",
        title="AnyFlow FAR, tiny and random",
        heads=2,
        head_width=24,
        layers=2,
        ffn=64,
        text_dim=32,
        text_length=16,
        freq_dim=32,
        rows=4,
        columns=8,
        vae_width=4,
        vae_multipliers=(1, 2, 2, 2),
        vae_blocks=1,
        scale=8,
        random=True,
    )


SPECS = {spec.name: spec for spec in (anyflow_1b(), anyflow_14b(), tiny())}


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
    )
