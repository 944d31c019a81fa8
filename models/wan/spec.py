"""All sizes and loop settings of a Wan card, as frozen values. Knows no tensor library.

Sizes are those of the public configurations (Wan 2.1 T2V 1.3B and 14B, 480 x 832); rollout settings are those of the
public inference configurations of Self-Forcing (2506.08009), LongLive (2509.22622) and Krea Realtime.
"""

from dataclasses import dataclass
from enum import StrEnum

from ..shared.video.vae_footprint import VaeSizes


class Positions(StrEnum):
    """ABSOLUTE: keys are kept rotated by their own frame. WINDOW: kept plain, rotated by their place in the window."""

    ABSOLUTE = "absolute"
    WINDOW = "window"


class Decoder(StrEnum):
    """VAE: Wan's own causal decoder. TINY: TAEHV, a small approximation of it."""

    VAE = "vae"
    TINY = "tiny"


@dataclass(frozen=True, slots=True)
class WanShape:
    """The transformer. `rows` and `columns` are those of a latent frame; a patch covers 2 x 2 of it."""

    dim: int = 1536
    heads: int = 12
    layers: int = 30
    ffn: int = 8960
    text_dim: int = 4096
    text_length: int = 512
    freq_dim: int = 256
    channels: int = 16
    rows: int = 60
    columns: int = 104

    def __post_init__(self) -> None:
        if self.dim % self.heads or self.head_width % 2 or self.rows % 2 or self.columns % 2:
            raise ValueError(f"dim by heads, an even head width and even latent rows and columns are needed: {self}")

    @property
    def head_width(self) -> int:
        return self.dim // self.heads

    @property
    def tokens(self) -> int:
        """Tokens of one latent frame."""
        return self.rows // 2 * (self.columns // 2)


@dataclass(frozen=True, slots=True)
class Rollout:
    """Chunk by chunk. Frames here are latent frames, `window` counts the chunk being made, `sink` is part of it.

    `recache_frames`: so many clean latents are kept, from which the committed window can be rebuilt under a new prompt;
    `recache`: that happens at every prompt switch. `context`: > 0 = nothing is committed; before each chunk the last so
    many clean latent frames are passed through the network anew, the first of them encoded again from its picture.
    """

    sigmas: tuple[float, ...]
    chunk: int = 3
    window: int = 21
    sink: int = 0
    positions: Positions = Positions.ABSOLUTE
    recache: bool = False
    recache_frames: int = 0
    context: int = 0

    def __post_init__(self) -> None:
        frames = (self.window, self.sink, self.recache_frames)
        if not 0 <= self.context <= self.chunk:
            raise ValueError(f"context {self.context} must fit one chunk of {self.chunk}")
        if any(n % self.chunk for n in frames) or self.window < self.chunk + self.sink:
            raise ValueError(f"window, sink and recache_frames are whole chunks and the window holds a chunk: {self}")

    @property
    def past_chunks(self) -> int:
        """Committed chunks that the chunk being made sees."""
        return 0 if self.context else self.window // self.chunk - 1

    @property
    def sink_chunks(self) -> int:
        return self.sink // self.chunk

    @property
    def rebuild(self) -> int:
        """Entries for a staged copy of all that may be rebuilt."""
        return self.past_chunks - self.sink_chunks if self.recache_frames else 0

    @property
    def kept_frames(self) -> int:
        """Clean latent frames a session carries."""
        return self.context or self.recache_frames


@dataclass(frozen=True, slots=True)
class Clip:
    """Whole clips, bidirectional, many steps with guidance. `frames` are latent frames."""

    frames: int = 21
    shift: float = 3.0
    steps: tuple[int, ...] = (50, 40, 30, 20)
    guidance: float = 6.0


@dataclass(frozen=True, slots=True)
class WanSpec:
    """One card's everything. `random`: weights are drawn, not loaded; `drawn`: they are although they are published, to
    measure a device: all noise, the same work. `lora_rank` > 0: the checkpoint has a LoRA, which is merged when it is
    loaded.
    """

    name: str
    title: str
    shape: WanShape
    vae: VaeSizes
    plan: Rollout | Clip
    decoder: Decoder = Decoder.VAE
    fps: int = 16
    scale: int = 1
    random: bool = False
    drawn: bool = False
    lora_rank: int = 0
    lora_alpha: float = 256.0
    tiny_widths: tuple[int, int, int, int] = (256, 128, 64, 64)

    @property
    def rollout(self) -> Rollout:
        if not isinstance(self.plan, Rollout):
            raise TypeError(f"card '{self.name}' makes clips, not chunks")
        return self.plan

    @property
    def clip(self) -> Clip:
        if not isinstance(self.plan, Clip):
            raise TypeError(f"card '{self.name}' makes chunks, not clips")
        return self.plan

    @property
    def width(self) -> int:
        return self.shape.columns * 8

    @property
    def height(self) -> int:
        return self.shape.rows * 8

    @property
    def chunk(self) -> int:
        """Latent frames of one chunk or clip."""
        return self.plan.chunk if isinstance(self.plan, Rollout) else self.plan.frames


def pixel_frames(latent_frames: int, opens: bool) -> int:
    """Frames a causal video decoder makes: the very first latent frame gives one, every other four."""
    return 4 * latent_frames - (3 if opens else 0)


def shifted(sigma: float, shift: float) -> float:
    """Noise level after the resolution shift: s x / (1 + (s - 1) x)."""
    return shift * sigma / (1 + (shift - 1) * sigma)


def few_steps(steps: tuple[int, ...], shift: float) -> tuple[float, ...]:
    """Noise levels of a distilled step list of 1000: (1000, 750, 500, 250) at shift 5 -> 1, .9375, .833, .625."""
    return tuple(shifted(step / 1000, shift) for step in steps)


def many_steps(steps: int, shift: float) -> tuple[float, ...]:
    """Shifted levels of `steps` equal steps from 1 towards 1/1000; the last step ends at 0, which is not listed."""
    return tuple(shifted(1 - 0.999 * i / steps, shift) for i in range(steps))
