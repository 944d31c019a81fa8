"""How far the light decoder's pictures are from the full one's, of a film that the full autoencoder encodes itself.

A disc moves over a slope of colours: 9 frames of 64 x 64, some seconds of a processor with the published sizes. The
error is the root mean square of the difference, of pictures in 0..1. Legend: T frames, H W rows and columns.
"""

from pathlib import Path

import torch
from torch import Tensor

from ..checkpoints.load import load_component
from ..checkpoints.manifest import ComponentManifest
from ..shared.video.vae import WanVae
from .spec import WanSpec
from .tiny_decoder import TinyDecoder

FRAMES, SIDE = 9, 64


def decoder_error(spec: WanSpec, vae: ComponentManifest, tiny: ComponentManifest, root: Path) -> float:
    """Of both as they lie under `root`; raises `WeightsError`."""
    full, light = WanVae(spec.vae), TinyDecoder(spec.vae.channels, spec.tiny_widths)
    load_component(vae, root, full)
    load_component(tiny, root, light)
    with torch.inference_mode():
        latents = full.encode(film()[None])
        wanted, made = (decoder.decode(latents, ())[0].clamp(-1, 1) for decoder in (full, light))
        return float(((made - wanted) / 2).square().mean().sqrt())


def film() -> Tensor:
    """Pictures [3, T, H, W] in [-1, 1]."""
    along = torch.linspace(-1, 1, SIDE)
    y_HW, x_HW = torch.meshgrid(along, along, indexing="ij")
    slope_3HW = torch.stack((x_HW, y_HW, -x_HW)) * 0.7
    frames = []
    for t in range(FRAMES):
        inside_HW = (x_HW + 0.5 - t / FRAMES) ** 2 + y_HW**2 < 0.1
        frames.append(torch.where(inside_HW, torch.tensor([0.8, -0.2, 0.1]).view(3, 1, 1), slope_3HW))
    return torch.stack(frames, 1)
