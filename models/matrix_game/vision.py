"""The opening picture: drawn from two colours when none is given, and looked at by an image encoder.

Published weights want CLIP ViT-H/14, all tokens of its last but one layer (extra `diffusers` brings transformers).
"""

import hashlib
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ...kernels.philox import NoiseKey, gaussian
from .spec import MatrixGameSpec

_MEAN, _STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


class ImageEncoder(Protocol):
    @property
    def network(self) -> nn.Module | None:
        """What has weights on the device."""
        ...

    def tokens(self, picture_3HW: Tensor) -> Tensor:
        """[image tokens, image width] of a picture in [-1, 1]."""
        ...


class DrawnVision:
    """Patches by a drawn matrix: no meaning, but another picture gives other tokens."""

    def __init__(self, spec: MatrixGameSpec) -> None:
        self._count, self.network = spec.image_tokens, None
        self._matrix = torch.from_numpy(gaussian(NoiseKey(5, 0, 0, 0), (48, spec.image_width))) / 48**0.5

    def tokens(self, picture_3HW: Tensor) -> Tensor:
        small = F.adaptive_avg_pool2d(picture_3HW.float(), (4, 4 * self._count))
        patches = small.reshape(3, 4, self._count, 4).permute(2, 0, 1, 3).flatten(1)
        tokens: Tensor = patches @ self._matrix.to(small.device)
        return tokens


class ClipVision:
    """`CLIPVisionModel` of transformers."""

    def __init__(self, model: Any) -> None:
        self._model = self.network = model.eval().requires_grad_(False)

    @classmethod
    def load(cls, folder: Path, dtype: torch.dtype) -> "ClipVision":
        """From a transformers folder; raises ImportError without the extra `diffusers`."""
        from transformers import CLIPVisionModel

        return cls(CLIPVisionModel.from_pretrained(folder, dtype=dtype, local_files_only=True))

    def tokens(self, picture_3HW: Tensor) -> Tensor:
        size = self._model.config.image_size
        picture = F.interpolate(picture_3HW[None].float(), (size, size), mode="bicubic", align_corners=False)
        mean, std = (torch.tensor(v, device=picture.device).view(1, 3, 1, 1) for v in (_MEAN, _STD))
        pixels = ((picture * 0.5 + 0.5) - mean) / std
        hidden = self._model(pixels.to(self._model.dtype), output_hidden_states=True).hidden_states[-2][0]
        result: Tensor = hidden
        return result


def colours(text: str) -> NDArray[np.float32]:
    """Sky and ground [2, 3] in [0, 1] from a hash of the text: equal texts, equal openings, no more is promised."""
    values = np.frombuffer(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:6], np.uint8)
    return (0.2 + 0.7 * values / 255).astype(np.float32).reshape(2, 3)


def drawn_opening(spec: MatrixGameSpec, palette: NDArray[np.float32]) -> NDArray[np.uint8]:
    """[H, W, 3]: a sky over a ground, with a path to the horizon."""
    height, width = spec.rows * 8, spec.columns * 8
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    horizon = 0.45 * height
    depth = np.clip((y - horizon) / (height - horizon), 0, 1)[..., None]
    sky = palette[0] * (0.7 + 0.3 * (y / horizon)[..., None])
    ground = palette[1] * (0.5 + 0.5 * depth)
    path = (np.abs(x - width / 2) < 0.02 * width + 0.25 * width * depth[..., 0])[..., None]
    picture = np.where(y[..., None] < horizon, sky, np.where(path, ground * 0.6 + 0.3, ground))
    drawn: NDArray[np.uint8] = (np.clip(picture, 0, 1) * 255).astype(np.uint8)
    return drawn
