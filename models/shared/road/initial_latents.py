"""The first latents of a world: three real frames of each look, made once by the simulator and the autoencoder.

    openings [V variants, 60 themes, 3 frames newest first, N tokens, C channels] float16

A world whose look is a mix starts from the nearest theme; the seed picks the variant.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ...weights import load_tensors
from .look import ONE_HOT, THEMES

VARIANTS, FIRST_FRAMES = 2, 3


def shape_of(tokens: int, channels: int) -> tuple[int, int, int, int, int]:
    """Of the file's only tensor."""
    return VARIANTS, THEMES, FIRST_FRAMES, tokens, channels


@dataclass(frozen=True, slots=True)
class Openings:
    """`latents_VT3NC` float32; see the module docstring."""

    latents_VT3NC: NDArray[np.float32]

    def pick(self, look_L: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
        """[3, N, C] of the theme nearest to a look."""
        theme = int(np.argmax(ONE_HOT @ look_L))
        variant = seed % len(self.latents_VT3NC)
        return np.asarray(self.latents_VT3NC[variant, theme], np.float32)


def load_openings(file: Path, tokens: int, channels: int) -> Openings:
    """Raises `WeightsError`."""
    tensors = load_tensors(file, {"openings": shape_of(tokens, channels)}, (torch.float16,))
    return Openings(np.asarray(tensors["openings"].float().numpy(), np.float32))
