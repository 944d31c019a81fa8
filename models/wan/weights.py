"""Where Wan weights are published and under which names; random weights for the tiny cards.

Our names are those of the original release, so its files need a prefix at most; the diffusers layout is renamed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..checkpoints.manifest import (
    TEXT_ENCODER_FILES,
    TOKENIZER,
    TOKENIZER_FILES,
    UMT5,
    CheckpointLayout,
    ComponentManifest,
    FolderManifest,
    Manifest,
    Shape,
    StandIn,
)
from ..checkpoints.names import KeyMap, Rename
from ..shared.video.vae_footprint import VaeSizes
from .spec import Decoder, WanSpec

if TYPE_CHECKING:
    from torch.nn import Module

_WAN = "Wan-AI/Wan2.1-T2V-1.3B"
_WAN_DIFFUSERS = "Wan-AI/Wan2.1-T2V-1.3B-Diffusers"

_LONGLIVE = "Efficient-Large-Model/LongLive-1.3B"
_LORA = ("base_model.model.", "base_model.model.model.")
_MODEL = ("model.",)

DIFFUSERS_TRANSFORMER = KeyMap((
    Rename("condition_embedder.text_embedder.linear_1.{}", "text_embedding.0.{}"),
    Rename("condition_embedder.text_embedder.linear_2.{}", "text_embedding.2.{}"),
    Rename("condition_embedder.time_embedder.linear_1.{}", "time_embedding.0.{}"),
    Rename("condition_embedder.time_embedder.linear_2.{}", "time_embedding.2.{}"),
    Rename("condition_embedder.time_proj.{}", "time_projection.1.{}"),
    Rename("scale_shift_table", "head.modulation"),
    Rename("proj_out.{}", "head.head.{}"),
    Rename("blocks.{}.scale_shift_table", "blocks.{}.modulation"),
    Rename("blocks.{}.norm2.{}", "blocks.{}.norm3.{}"),
    Rename("blocks.{}.ffn.net.0.proj.{}", "blocks.{}.ffn.0.{}"),
    Rename("blocks.{}.ffn.net.2.{}", "blocks.{}.ffn.2.{}"),
    *(
        Rename(f"blocks.{{}}.{theirs}.{public}.{{}}", f"blocks.{{}}.{ours}.{name}.{{}}")
        for theirs, ours in (("attn1", "self_attn"), ("attn2", "cross_attn"))
        for public, name in (
            ("to_q", "q"), ("to_k", "k"), ("to_v", "v"), ("to_out.0", "o"), ("norm_q", "norm_q"), ("norm_k", "norm_k"),
        )
    ),
))  # fmt: skip


def diffusers_vae(shape: VaeSizes) -> KeyMap:
    """The released layout is flat; diffusers groups the decoder's residual blocks by level."""
    rules = [
        Rename("quant_conv.{}", "conv1.{}"),
        Rename("post_quant_conv.{}", "conv2.{}"),
    ]
    for side in ("encoder", "decoder"):
        rules += [
            Rename(f"{side}.conv_in.{{}}", f"{side}.conv1.{{}}"),
            Rename(f"{side}.norm_out.gamma", f"{side}.head.0.gamma"),
            Rename(f"{side}.conv_out.{{}}", f"{side}.head.2.{{}}"),
            Rename(f"{side}.mid_block.attentions.0.{{*}}", f"{side}.middle.1.{{*}}"),
            *_residual(f"{side}.mid_block.resnets.0", f"{side}.middle.0"),
            *_residual(f"{side}.mid_block.resnets.1", f"{side}.middle.2"),
        ]
    rules += [rule for i in range(len(shape.multipliers) * (shape.blocks + 1)) for rule in _residual(
        f"encoder.down_blocks.{i}", f"encoder.downsamples.{i}")]  # fmt: skip
    rules.append(Rename("encoder.down_blocks.{*}", "encoder.downsamples.{*}"))
    per_level = shape.blocks + 2
    for level in range(len(shape.multipliers)):
        for i in range(shape.blocks + 1):
            rules += _residual(f"decoder.up_blocks.{level}.resnets.{i}", f"decoder.upsamples.{level * per_level + i}")
        last = level * per_level + shape.blocks + 1
        rules.append(Rename(f"decoder.up_blocks.{level}.upsamplers.0.{{*}}", f"decoder.upsamples.{last}.{{*}}"))
    return KeyMap(tuple(rules))


_ENCODER = (r"encoder\..*",)


def manifest(spec: WanSpec) -> Manifest | None:
    """None for cards whose weights are drawn."""
    if spec.random:
        return None
    dit_repo, dit_layouts = _TRANSFORMERS[spec.name]
    vae = ComponentManifest(
        "vae",
        lambda: vae_keys(spec.vae),
        (
            CheckpointLayout("original", "Wan2.1_VAE.pth", KeyMap(), repo=_WAN),
            CheckpointLayout("diffusers", "vae", diffusers_vae(spec.vae), repo=_WAN_DIFFUSERS),
        ),
        config={"_class_name": "AutoencoderKLWan", "base_dim": spec.vae.width, "z_dim": spec.vae.channels},
    )
    transformer = ComponentManifest(
        "transformer",
        lambda: transformer_keys(spec),
        (*dit_layouts, CheckpointLayout("diffusers", "transformer", DIFFUSERS_TRANSFORMER, repo=dit_repo)),
        config=_transformer_config(spec),
    )
    parts = [transformer, vae]
    if spec.decoder is Decoder.TINY:
        parts.append(_light_decoder(spec, vae))
    if spec.lora_rank:
        file = CheckpointLayout(
            "original", "models/lora.pt", KeyMap(), repo=_LONGLIVE, unwrap=("generator_lora",), prefixes=_LORA
        )
        parts.append(ComponentManifest("lora", lambda: lora_keys(spec), (file,)))
    licence = "CC-BY-NC-SA-4.0" if spec.name.startswith("krea") else "Apache-2.0"
    prompts = (
        FolderManifest("text_encoder", _WAN_DIFFUSERS, TEXT_ENCODER_FILES, UMT5, {"d_model": spec.shape.text_dim}),
        FolderManifest("tokenizer", _WAN_DIFFUSERS, TOKENIZER_FILES, TOKENIZER),
    )
    return Manifest(spec.name, tuple(parts), licence, folders=prompts)


_TRANSFORMERS: Mapping[str, tuple[str, tuple[CheckpointLayout, ...]]] = {
    "self-forcing-1.3b": (
        "",
        (
            CheckpointLayout(
                "original", "checkpoints/self_forcing_dmd.pt", KeyMap(), repo="gdhe17/Self-Forcing", prefixes=_MODEL,
                unwrap=("generator_ema", "generator"),
            ),
        ),
    ),
    "longlive-1.3b": (
        "",
        (
            CheckpointLayout(
                "original", "models/longlive_base.pt", KeyMap(), repo=_LONGLIVE, prefixes=_MODEL,
                unwrap=("generator", "generator_ema"),
            ),
        ),
    ),
    "krea-realtime-14b": (
        "",
        (
            CheckpointLayout(
                "original", "krea-realtime-video-14b.safetensors", KeyMap(), repo="krea/krea-realtime-video",
                prefixes=_MODEL,
            ),
        ),
    ),
    "wan-t2v-1.3b": (
        _WAN_DIFFUSERS,
        (CheckpointLayout("original", "diffusion_pytorch_model.safetensors", KeyMap(), repo=_WAN),),
    ),
}  # fmt: skip


_TINY = (
    CheckpointLayout("safetensors", "taew2_1.safetensors", KeyMap(), repo="Kijai/WanVideo_comfy", ignore=_ENCODER),
    CheckpointLayout("original", "taew2_1.pth", KeyMap(), repo="", ignore=_ENCODER),
)


TINY_TOLERANCE = 0.08
"""How far the light decoder's pictures may be from the full one's. No published weights were here to measure it with; a
decoder of other latents is several times as far off.
"""


def _light_decoder(spec: WanSpec, vae: ComponentManifest) -> ComponentManifest:
    tiny = ComponentManifest("tiny_decoder", lambda: tiny_keys(spec), _TINY)

    def error(root: Path) -> float:
        from .decoder_error import decoder_error

        return decoder_error(spec, vae, tiny, root)

    return replace(tiny, stands_in=StandIn("vae", TINY_TOLERANCE, "rms of pictures in 0..1", error))


def transformer_keys(spec: WanSpec) -> Mapping[str, Shape]:
    from .transformer import WanTransformer

    return _keys(lambda: WanTransformer(spec.shape))


def lora_keys(spec: WanSpec) -> Mapping[str, Shape]:
    """A pair for every linear layer of the blocks; the sides are named after the layer."""
    weights = {key: shape for key, shape in transformer_keys(spec).items() if key.startswith("blocks.")}
    table: dict[str, Shape] = {}
    for key, shape in weights.items():
        layer, _, kind = key.rpartition(".")
        if kind == "weight" and len(shape) == 2:
            table[f"{layer}.lora_A.weight"] = (spec.lora_rank, shape[1])
            table[f"{layer}.lora_B.weight"] = (shape[0], spec.lora_rank)
    return table


def vae_keys(shape: VaeSizes) -> Mapping[str, Shape]:
    from ..shared.video.vae import WanVae

    return _keys(lambda: WanVae(shape))


def tiny_keys(spec: WanSpec) -> Mapping[str, Shape]:
    from .tiny_decoder import TinyDecoder

    return _keys(lambda: TinyDecoder(spec.vae.channels, spec.tiny_widths))


def _keys(make: Callable[[], "Module"]) -> Mapping[str, Shape]:
    """Names and shapes of a network that is never given memory."""
    import torch

    with torch.device("meta"):
        return {name: tuple(value.shape) for name, value in make().state_dict().items()}


def _transformer_config(spec: WanSpec) -> Mapping[str, object]:
    s = spec.shape
    return {
        "_class_name": "WanTransformer3DModel", "num_attention_heads": s.heads, "attention_head_dim": s.head_width,
        "text_dim": s.text_dim, "freq_dim": s.freq_dim, "ffn_dim": s.ffn, "num_layers": s.layers,
        "in_channels": s.channels, "out_channels": s.channels,
    }  # fmt: skip


def _residual(public: str, ours: str) -> list[Rename]:
    names = (("norm1", "residual.0"), ("conv1", "residual.2"), ("norm2", "residual.3"), ("conv2", "residual.6"))
    rules = [Rename(f"{public}.{theirs}.{{}}", f"{ours}.{name}.{{}}") for theirs, name in names]
    return [*rules, Rename(f"{public}.conv_shortcut.{{}}", f"{ours}.shortcut.{{}}")]
