"""Diffusers' and transformers' own classes, built, loaded and called.

    AnyFlowFARTransformer3DModel   denoise (reads a cache) and commit (fills a cache), attending as attention.py
    AutoencoderKLWan               decoder alone, one latent frame at a time, its feature cache handed in and out
    UMT5EncoderModel               prompts

Legend: B rows, F latent frames, C channels, H W latent rows and columns, L text tokens, M text width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import torch
from diffusers import AnyFlowFARTransformer3DModel, AutoencoderKLWan
from diffusers.models.activations import GELU
from torch import Tensor
from transformers import AutoTokenizer, UMT5Config, UMT5EncoderModel

from ...kernels.upload import upload
from ..shared.invariant import make_invariant
from . import footprint
from .attention import CachedAttention
from .spec import AnyFlowSpec

Cache = Mapping[int, Mapping[str, Tensor]]  # per layer: full_cache, compressed_cache [2, B, heads, tokens, head width]
Tokenize = Callable[[str], list[int]]


class Features(msgspec.Struct, frozen=True):
    """The decoder's feature cache between latent frames. Marks, one a slot: 'n'ot reached, 'r'epeats, 't'ensor."""

    marks: str
    tensors: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Networks:
    """All three, in inference mode. `spec` is what they were built by."""

    spec: AnyFlowSpec
    transformer: Any
    vae: Any
    text_encoder: Any
    tokenize: Tokenize

    def encode(self, text: str) -> Tensor:
        """[text_length, M]: zeros after the last token, as the pipeline pads."""
        ids = self.tokenize(text)
        length, device = self.spec.text_length, next(self.text_encoder.parameters()).device
        padded = torch.tensor([ids + [0] * (length - len(ids))], device=device)
        mask = torch.tensor([[1] * len(ids) + [0] * (length - len(ids))], device=device)
        hidden: Tensor = self.text_encoder(padded, mask).last_hidden_state[0]
        return torch.cat((hidden[: len(ids)], hidden.new_zeros(length - len(ids), hidden.shape[1])))

    def invariant(self) -> None:
        """Take the form whose rows share a pass and keep the bits that each has alone: it cannot be undone."""
        make_invariant(self.transformer, (torch.nn.Conv3d, GELU))

    def denoise(
        self,
        x_BFCHW: Tensor,
        levels: Sequence[tuple[float, float]],
        text_BLM: Tensor,
        cache: Cache,
        partition: tuple[int, ...],
    ) -> Tensor:
        """Mean velocity of each row's last chunk of `partition`, from level t to r; the cache holds those before."""
        frames = x_BFCHW.shape[1]

        def times(levels: Sequence[float]) -> Tensor:
            return upload(torch.tensor([[x * 1000] * frames for x in levels], dtype=torch.float64), x_BFCHW.device)

        flow, _ = self.transformer(
            hidden_states=x_BFCHW,
            timestep=times([t for t, _ in levels]),
            r_timestep=times([r for _, r in levels]),
            encoder_hidden_states=text_BLM,
            chunk_partition=list(partition),
            return_dict=False,
            kv_cache=cache,
            kv_cache_flag={"num_cached_chunks": len(partition) - 1, "is_cache_step": False},
        )
        result: Tensor = flow
        return result

    def commit(self, x_BFCHW: Tensor, text_BLM: Tensor, cache: Cache, partition: tuple[int, ...]) -> None:
        """Fill the cache with the keys and values of all clean chunks of `partition`."""
        clean = torch.zeros(x_BFCHW.shape[:2], dtype=torch.int64, device=x_BFCHW.device)
        self.transformer(
            hidden_states=x_BFCHW,
            timestep=clean,
            r_timestep=clean,
            encoder_hidden_states=text_BLM,
            chunk_partition=list(partition),
            attention_mask=self._ends(partition),
            return_dict=False,
            kv_cache=cache,
            kv_cache_flag={"num_cached_chunks": len(partition) - 1, "is_cache_step": True},
        )

    def _ends(self, partition: tuple[int, ...]) -> tuple[int, ...]:
        """Tokens up to the end of each chunk of a commit pass; the last ones are at full resolution."""
        spec = self.spec
        old = len(partition) - (spec.full_limit - 1)
        tokens = [frames * (spec.tokens if at >= old else spec.tokens // 4) for at, frames in enumerate(partition)]
        return tuple(accumulate(tokens))

    def encode_picture(self, picture_3HW: Tensor) -> Tensor:
        """A picture in [-1, 1] as one clean latent frame [1, C, H, W]."""
        config = self.vae.config
        latent: Tensor = self.vae.encode(picture_3HW[None, :, None]).latent_dist.mode()[0].transpose(0, 1)
        mean, std = (
            torch.tensor(values).view(1, -1, 1, 1).to(latent) for values in (config.latents_mean, config.latents_std)
        )
        return (latent - mean) / std

    def decode(self, latent_FCHW: Tensor, features: Features | None) -> tuple[Tensor, Features]:
        """Pictures [T, 3, 8H, 8W] in [-1, 1] and the next features; None = a video begins: 1 picture, then 4 each."""
        config = self.vae.config
        mean = torch.tensor(config.latents_mean).view(1, -1, 1, 1, 1).to(latent_FCHW)
        inverse = 1.0 / torch.tensor(config.latents_std).view(1, -1, 1, 1, 1).to(latent_FCHW)
        z = self.vae.post_quant_conv(latent_FCHW.transpose(0, 1)[None] / inverse + mean)
        slots = _slots(features, self.vae._cached_conv_counts["decoder"])
        pictures = []
        for frame in range(z.shape[2]):
            opens = features is None and frame == 0
            pictures.append(self.vae.decoder(z[:, :, frame : frame + 1], slots, [0], opens))
        return torch.cat(pictures, 2)[0].clamp(-1, 1).transpose(0, 1), _features(slots)


def draw(spec: AnyFlowSpec, seed: int = 0, attend: bool = True) -> Networks:
    """Networks of the card's size with random weights; equal seeds, equal weights. `attend`: with our attention."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        transformer, vae = _transformer(spec), _vae(spec)
        text_encoder = UMT5EncoderModel(_text_config(spec))
        for parameter in transformer.parameters():
            parameter.data = torch.randn_like(parameter) * (0.08 if parameter.ndim > 1 else 0.3)
    if attend:
        _attend(transformer)
    return Networks(spec, _ready(transformer), _ready(vae), _ready(text_encoder), _bytes_of(spec))


def load(spec: AnyFlowSpec, root: Path, dtype: torch.dtype) -> Networks:
    """From a diffusers folder: transformer, vae, text_encoder, tokenizer. No network is used."""
    transformer = AnyFlowFARTransformer3DModel.from_pretrained(root / "transformer", torch_dtype=dtype)
    _attend(transformer)
    vae = AutoencoderKLWan.from_pretrained(root / "vae", torch_dtype=dtype)
    text_encoder = UMT5EncoderModel.from_pretrained(root / "text_encoder", dtype=dtype)
    if spec.random:
        return Networks(spec, _ready(transformer), _ready(vae), _ready(text_encoder), _bytes_of(spec))
    words = AutoTokenizer.from_pretrained(root / "tokenizer")

    def tokenize(text: str) -> list[int]:
        clean = " ".join(text.split())
        ids: list[int] = words(clean, max_length=spec.text_length, truncation=True)["input_ids"]
        return ids

    return Networks(spec, _ready(transformer), _ready(vae), _ready(text_encoder), tokenize)


def build(spec: AnyFlowSpec, component: str) -> torch.nn.Module:
    """One component without weights worth keeping: for key tables, built on the meta device."""
    match component:
        case "transformer":
            return _transformer(spec)
        case "vae":
            return _vae(spec)
        case "text_encoder":
            text_encoder: torch.nn.Module = UMT5EncoderModel(_text_config(spec))
            return text_encoder
        case _:
            raise LookupError(f"AnyFlow has no component '{component}'")


def _transformer(spec: AnyFlowSpec) -> torch.nn.Module:
    built: torch.nn.Module = AnyFlowFARTransformer3DModel(
        num_attention_heads=spec.heads,
        attention_head_dim=spec.head_width,
        in_channels=spec.channels,
        out_channels=spec.channels,
        text_dim=spec.text_dim,
        freq_dim=spec.freq_dim,
        ffn_dim=spec.ffn,
        num_layers=spec.layers,
        full_chunk_limit=spec.full_limit,
    )
    return built


def _vae(spec: AnyFlowSpec) -> torch.nn.Module:
    built: torch.nn.Module = AutoencoderKLWan(
        base_dim=spec.vae_width,
        z_dim=spec.channels,
        dim_mult=list(spec.vae_multipliers),
        num_res_blocks=spec.vae_blocks,
    )
    return built


def _text_config(spec: AnyFlowSpec) -> UMT5Config:
    if not spec.random:
        return UMT5Config(
            vocab_size=256384, d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64,
            feed_forward_proj="gated-gelu",
        )  # fmt: skip
    return UMT5Config(
        vocab_size=footprint.TINY_WORDS, d_model=spec.text_dim, d_kv=footprint.TINY_HEAD_WIDTH, d_ff=footprint.TINY_FFN,
        num_layers=footprint.TINY_LAYERS, num_heads=footprint.TINY_HEADS, feed_forward_proj="gated-gelu",
    )  # fmt: skip


def _bytes_of(spec: AnyFlowSpec) -> Tokenize:
    """The drawn text encoder reads bytes, shifted past pad, end and unknown; 1 ends a text."""
    return lambda text: [byte + 3 for byte in text.encode("utf-8", "replace")[: spec.text_length - 1]] + [1]


def _attend(transformer: Any) -> None:
    for block in transformer.blocks:
        block.attn1.set_processor(CachedAttention())


def _ready(module: torch.nn.Module) -> torch.nn.Module:
    return module.eval().requires_grad_(False)


def _slots(features: Features | None, count: int) -> list[Any]:
    if features is None:
        return [None] * count
    tensors = iter(features.tensors)
    return [next(tensors) if mark == "t" else "Rep" if mark == "r" else None for mark in features.marks]


def _features(slots: list[Any]) -> Features:
    marks = "".join("t" if isinstance(slot, Tensor) else "n" if slot is None else "r" for slot in slots)
    return Features(marks, tuple(slot for slot in slots if isinstance(slot, Tensor)))
