"""All parts of a tiny Wan card with random weights."""

import torch

from ..shared.random_weights import draw
from ..shared.video.vae import WanVae
from .runtime import WanNetworks
from .spec import Decoder, WanSpec
from .text import DrawnText
from .tiny_decoder import TinyDecoder
from .transformer import WanTransformer


def networks(spec: WanSpec, dtype: torch.dtype, seed: int = 1) -> WanNetworks:
    """All parts of a tiny card."""
    tiny = TinyDecoder(spec.vae.channels, spec.tiny_widths) if spec.decoder is Decoder.TINY else None
    parts = WanNetworks(WanTransformer(spec.shape), WanVae(spec.vae), DrawnText(spec.shape), tiny)
    draw(parts.transformer, seed)
    parts.transformer.in_precision(dtype)
    for module in (parts.vae, parts.tiny):
        if module is not None:
            draw(module, seed)
            module.to(dtype)
    return parts
