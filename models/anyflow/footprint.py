"""Bytes and FLOPs of an AnyFlow card from its sizes alone. Knows no tensor library; tests hold it against the modules.

A multiply and an add are two FLOPs. The commit pass goes over the whole history, its oldest part at 1/4 of the tokens.
"""

from ..contract.footprint import Footprint, FootprintPart, StepCost
from ..shared.video import vae_footprint
from ..shared.video.vae_footprint import VaeSizes
from .spec import AnyFlowSpec

TINY_LAYERS, TINY_FFN, TINY_WORDS, TINY_HEADS, TINY_HEAD_WIDTH = 1, 32, 260, 2, 8


def vae_sizes(spec: AnyFlowSpec) -> VaeSizes:
    return VaeSizes(spec.vae_width, spec.vae_multipliers, spec.vae_blocks, spec.channels)


def transformer_parameters(spec: AnyFlowSpec) -> int:
    d, square = spec.dim, spec.dim * spec.dim + spec.dim
    attention = 4 * square + 2 * d
    block = 2 * attention + 2 * d + 2 * d * spec.ffn + spec.ffn + d + 6 * d
    text = spec.text_dim * d + d + square
    times = 2 * (spec.freq_dim * d + d + square) + 6 * square
    patches = (spec.channels * 4 * d + d) + (spec.channels * 16 * d + d)
    return spec.layers * block + text + times + patches + d * spec.channels * 4 + spec.channels * 4 + 2 * d


def text_parameters(spec: AnyFlowSpec) -> int:
    if spec.random:
        width = spec.text_dim
        layer = 4 * width * TINY_HEADS * TINY_HEAD_WIDTH + 3 * width * TINY_FFN + 2 * width + 32 * TINY_HEADS
        return TINY_WORDS * width + TINY_LAYERS * layer + width
    return vae_footprint.umt5_parameters()


def parts(spec: AnyFlowSpec) -> tuple[FootprintPart, ...]:
    width = 4.0 if spec.random else 2.0
    return (
        FootprintPart("transformer", transformer_parameters(spec), width),
        FootprintPart("vae", vae_footprint.vae_parameters(vae_sizes(spec)), width),
        FootprintPart("text_encoder", text_parameters(spec), width),
    )


def entry_elements(spec: AnyFlowSpec) -> int:
    """Keys and values of one whole cache: the full and the compressed part in every layer."""
    return 2 * spec.layers * spec.dim * (spec.full_slots + spec.compressed_slots)


def decoder_elements(spec: AnyFlowSpec) -> int:
    return vae_footprint.cache_elements(vae_sizes(spec), spec.rows, spec.columns)


def carry_elements(spec: AnyFlowSpec) -> int:
    """Clean latents of the history."""
    return (1 + (spec.history - 1) * spec.chunk) * spec.channels * spec.rows * spec.columns


def pass_flop(spec: AnyFlowSpec, tokens: int, past: int, frames: int) -> int:
    """One pass over `tokens` that also see `past` ones; text keys are made anew in every pass, as diffusers does it."""
    d = spec.dim
    layer = 12 * tokens * d * d + 4 * tokens * (tokens + past) * d + 4 * tokens * spec.text_length * d
    layer += 4 * tokens * d * spec.ffn + 4 * spec.text_length * d * d
    text = 2 * spec.text_length * d * (spec.text_dim + d)
    return spec.layers * layer + text + 4 * tokens * d * spec.channels * 4 + 16 * frames * d * d


def account(spec: AnyFlowSpec) -> Footprint:
    """At a full history; a commit pass is block-causal and diffusers' mask skips what is not seen: half the scores."""
    width = 4 if spec.random else 2
    tokens = spec.chunk * spec.tokens
    past_frames = 1 + (spec.history - 1) * spec.chunk
    old_frames = past_frames - (spec.full_limit - 1) * spec.chunk
    past = spec.full_slots + old_frames * spec.tokens // 4
    entry = entry_elements(spec) * width
    decode = vae_footprint.decode_flop(vae_sizes(spec), spec.rows, spec.columns, spec.chunk)
    steps = (
        StepCost("denoise", pass_flop(spec, tokens, past, spec.chunk), 4, "transformer", entry),
        StepCost("commit", pass_flop(spec, past, -past // 2, past_frames), 1, "transformer", entry),
        StepCost("decode", decode, 1, "vae", 2 * decoder_elements(spec) * width),
    )
    text = StepCost("prompt_encode", vae_footprint.umt5_flop(spec.text_length), 1, "text_encoder")
    prompt = None if spec.random else text
    widest = max((c.inputs + c.outputs) * c.area * c.times for c in vae_footprint.decoder(vae_sizes(spec)))
    activation = max(past * (spec.ffn + 2 * spec.dim) * width, widest * spec.rows * spec.columns * width)
    return Footprint(
        parts=parts(spec),
        steps=steps,
        kv_bytes=2 * entry_elements(spec) * width,
        decoder_bytes=decoder_elements(spec) * width,
        carry_bytes=carry_elements(spec) * 4,
        activation_bytes=activation,
        chunk_seconds=4 * spec.chunk / spec.fps,
        prompt=prompt,
    )
