"""What the Wan loops ask of the runtime and what comes back. Tensors stay where they were made.

A denoise row is the same for a live chunk and for a clip: the velocity of x at sigma, guided or not, and the move to
the next noise level. Legend: C F H W of latents (float32), 3 T H W of pictures.
"""

from enum import StrEnum
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ...kernels.philox import NoiseKey
from ..contract.conditions import AdapterShare
from ..contract.latents import Latents
from ..contract.loop import Committed


class Prompt(msgspec.Struct, frozen=True):
    """A mix of embeddings [L, text_dim]; `key` says what is mixed, so equal keys are equal mixes.

    `adapters`: what stands beside the weights for the row, here too: it changes what the words mean.
    """

    key: str
    shares: tuple[tuple[Tensor, float], ...]
    adapters: tuple[AdapterShare, ...] = ()


class Sharing(StrEnum):
    """How rows of several sessions share a pass. PLAIN: one pass, each row to the card's tolerance.

    ALONE: a pass for each, so that it has the bits it has alone. INVARIANT: one pass, and the same bits all the same.
    """

    PLAIN = "plain"
    ALONE = "alone"
    INVARIANT = "invariant"


class Move(StrEnum):
    """From the velocity to the next x. RENOISE: x0, then fresh noise at the next level. EULER: along the velocity.
    STAY: the velocity itself comes back, and the loop moves on.
    """

    RENOISE = "renoise"
    EULER = "euler"
    STAY = "stay"


class Policy(StrEnum):
    """How guidance is run. NONE: the prompt alone. SEQUENTIAL: two steps. BATCHED: two rows of one step.

    CFG_ZERO: batched, the unconditional velocity scaled to fit and the first step skipped (2503.18886).
    """

    NONE = "none"
    SEQUENTIAL = "sequential"
    BATCHED = "batched"
    CFG_ZERO = "cfg_zero"


class Guide(msgspec.Struct, frozen=True):
    """`part`: 'negative' = only the velocity without the prompt is wanted; 'whole' = the guided move.

    `negative_CFHW`: that velocity when an earlier step made it.
    """

    policy: Policy
    scale: float
    part: Literal["negative", "whole"] = "whole"
    negative_CFHW: Tensor | None = None


class DenoiseRow(msgspec.Struct, frozen=True):
    """`x_CFHW` None = it is the noise of `noise` itself.

    `next_sigma` 0 = the result is the clean x0. `rebuilt`, `context`: what to read, see `Reads`. `timestep`: what the
    network is told, None = 1000 sigma.
    """

    x_CFHW: Tensor | None
    frames: int
    sigma: float
    next_sigma: float
    move: Move
    noise: NoiseKey
    first_frame: int
    prompt: Prompt
    rebuilt: int = 0
    context: int = 0
    guide: Guide | None = None
    timestep: float | None = None

    @property
    def told(self) -> float:
        return self.sigma * 1000 if self.timestep is None else self.timestep


class CommitRow(msgspec.Struct, frozen=True):
    """Keys and values of clean latents into the staged entry."""

    x_CFHW: Tensor
    first_frame: int
    prompt: Prompt
    rebuilt: int = 0


class RecacheRow(msgspec.Struct, frozen=True):
    """Clean latents passed anew, chunk by chunk, each seeing the sink and the rebuilt ones before it.

    The last `keep` chunks go into the spare entries; `keep` 0 = all of it is one context in the staged entry.
    """

    x_CFHW: Tensor
    first_frame: int
    prompt: Prompt
    keep: int


class DecodeRow(msgspec.Struct, frozen=True):
    """`edge` > 0: also hand back the picture that many frames before the end."""

    x_CFHW: Tensor
    features: tuple[Tensor, ...]
    edge: int = 0


class EncodeRow(msgspec.Struct, frozen=True):
    """Pictures in [-1, 1]; 4n + 1 of them become n + 1 latent frames."""

    picture_3THW: Tensor


WanRow = DenoiseRow | CommitRow | RecacheRow | DecodeRow | EncodeRow


class Denoised(msgspec.Struct, frozen=True):
    """The next x (the clean one after the last step), or a velocity where that was asked for."""

    x_CFHW: Tensor


class Decoded(msgspec.Struct, frozen=True):
    frames: NDArray[np.uint8]
    features: tuple[Tensor, ...]
    latents: Latents
    edge_3HW: Tensor | None


class Encoded(msgspec.Struct, frozen=True):
    x_CFHW: Tensor


WanResult = Denoised | Committed | Decoded | Encoded
