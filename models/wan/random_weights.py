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
    """All parts of a tiny card, on the CPU; of one that is drawn in its published size, on the GPU if there is one."""
    device = torch.device("cuda" if spec.drawn and torch.cuda.is_available() else "cpu")
    with torch.device("meta" if spec.drawn else "cpu"):
        tiny = TinyDecoder(spec.vae.channels, spec.tiny_widths) if spec.decoder is Decoder.TINY else None
        transformer, vae = WanTransformer(spec.shape), WanVae(spec.vae)
    parts = WanNetworks(transformer, vae, DrawnText(spec.shape), tiny)
    if spec.drawn:
        transformer.in_precision(dtype)
    for module in (parts.transformer, parts.vae, parts.tiny):
        if module is not None:
            if spec.drawn:
                module.to_empty(device=device)
            draw(module, seed)
            if module is transformer:
                transformer.in_precision(dtype)
            else:
                module.to(dtype)
    return parts
