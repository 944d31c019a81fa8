"""The AnyFlow FAR cards' sizes and the rollout's settings. Knows no tensor library.

Public sizes are those of nvidia/AnyFlow-FAR-Wan2.1-{1.3B,14B}-Diffusers. AnyFlow: 2605.13724, FAR: 2503.19325.
"""

from dataclasses import dataclass, replace

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
