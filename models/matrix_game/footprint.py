"""Bytes and FLOPs of a Matrix-Game card from its sizes alone. Knows no tensor library; a test holds it to the modules.

A multiply and an add are two FLOPs. The opening's encode step is counted apart: it runs once in a world.
"""

from ..contract.footprint import Footprint, FootprintPart, StepCost
from ..shared.video import vae_footprint
from .spec import MatrixGameSpec

_CLIP_H = 630_766_080  # ViT-H/14 with 257 positions, all 32 layers, no projection, as transformers counts it


def action_parameters(spec: MatrixGameSpec) -> int:
    """One action module: keyboard, and mouse where the mode has one. Norm weights are stored and never used."""
    w, d, h = spec.action_width, spec.dim, spec.action_hidden
    head = w // spec.action_heads
    keyboard = spec.keys * h + h + h * h + h + d * w + h * 12 * 2 * w + w * d + 2 * head
    if not spec.mouse:
        return keyboard
    mouse = (24 + d) * w + w + w * w + w + 2 * w + 3 * w * w + w * d + 2 * head
    return keyboard + mouse


def transformer_parameters(spec: MatrixGameSpec) -> int:
    d, square = spec.dim, spec.dim * spec.dim + spec.dim
    block = 2 * (4 * square + 2 * d) + 2 * d + 2 * d * spec.ffn + spec.ffn + d + 6 * d
    time = spec.freq_dim * d + d + square + 6 * square
    i = spec.image_width
    image = 2 * i + i * i + i + i * d + d + 2 * d
    patch = (2 * spec.channels + 4) * 4 * d + d
    head = d * spec.channels * 4 + spec.channels * 4 + 2 * d
    return spec.layers * block + spec.action_layers * action_parameters(spec) + time + image + patch + head


def parts(spec: MatrixGameSpec) -> tuple[FootprintPart, ...]:
    width = 4.0 if spec.random else 2.0
    return (
        FootprintPart("transformer", transformer_parameters(spec), width),
        FootprintPart("vae", vae_footprint.vae_parameters(spec.vae), width),
        FootprintPart("image_encoder", 0 if spec.random else _CLIP_H, width),
    )


def entry_elements(spec: MatrixGameSpec) -> int:
    """Keys and values of one chunk: all layers' tokens, and in the action layers per token (mouse) and frame (keys)."""
    main = spec.layers * spec.chunk * spec.tokens * spec.dim
    mouse = spec.action_layers * spec.chunk * spec.tokens * spec.action_width if spec.mouse else 0
    keyboard = spec.action_layers * spec.chunk * spec.action_width
    return 2 * (main + mouse + keyboard)


def carry_elements(spec: MatrixGameSpec) -> int:
    """Streaming decoder, conditions of the opening picture, image tokens."""
    decoder = vae_footprint.cache_elements(spec.vae, spec.rows, spec.columns)
    picture = spec.condition_frames * spec.channels * spec.rows * spec.columns
    return decoder + picture + spec.image_tokens * spec.image_width


def pass_flop(spec: MatrixGameSpec) -> int:
    """One pass over a chunk at a full window; image keys are left out."""
    t, d, w = spec.chunk * spec.tokens, spec.dim, spec.action_width
    layer = 12 * t * d * d + 4 * t * spec.local * spec.tokens * d + 4 * t * spec.image_tokens * d + 4 * t * d * spec.ffn
    keyboard = 4 * t * d * w + 4 * t * spec.local * w
    mouse = 2 * t * ((d + 24) * w + w * w + 3 * w * w + w * d) + 4 * t * spec.local * w if spec.mouse else 0
    edges = 2 * t * d * (2 * spec.channels + 4) * 4 + 2 * t * d * spec.channels * 4 + 14 * spec.chunk * d * d
    return spec.layers * layer + spec.action_layers * (keyboard + mouse) + edges


def account(spec: MatrixGameSpec) -> Footprint:
    width = 4 if spec.random else 2
    flop = pass_flop(spec)
    decode = vae_footprint.decode_flop(spec.vae, spec.rows, spec.columns, spec.chunk)
    widest = max((c.inputs + c.outputs) * c.area * c.times for c in vae_footprint.decoder(spec.vae))
    tokens = spec.chunk * spec.tokens
    decoder = vae_footprint.cache_elements(spec.vae, spec.rows, spec.columns)
    return Footprint(
        parts=parts(spec),
        steps=(
            StepCost("denoise", flop, 3, "transformer", entry_elements(spec) * width),
            StepCost("commit", flop, 1, "transformer", entry_elements(spec) * width),
            StepCost("decode", decode, 1, "vae", 2 * decoder * width),
        ),
        kv_bytes=2 * entry_elements(spec) * width,
        decoder_bytes=decoder * width,
        carry_bytes=(carry_elements(spec) - decoder) * width,
        activation_bytes=max(tokens * (spec.ffn + 2 * spec.dim), widest * spec.rows * spec.columns) * width,
        chunk_seconds=4 * spec.chunk / spec.fps,
    )
