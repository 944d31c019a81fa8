"""The Matrix-Game 2.0 cards' sizes and modes. Knows no tensor library.

Sizes are those of the published configurations of Skywork/Matrix-Game-2.0. `local` counts latent frames that a frame
sees, those of its own chunk included: 6, or 4 in the driving mode.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from ..shared.video.vae_footprint import VaeSizes

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
