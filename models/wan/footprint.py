"""Bytes and FLOPs of a Wan card from its sizes alone, and the element counts its cache is declared with.

A multiply and an add are two FLOPs. Keys of a pass count the past, so denoise passes are priced at a full window.
Knows no tensor library; a test compares every count with the modules themselves.
"""

from collections.abc import Iterator

from ..contract.footprint import Footprint, FootprintPart, StepCost
from ..shared.video import vae_footprint
from ..shared.video.vae_footprint import Conv
from .spec import Clip, Decoder, Rollout, WanSpec


def transformer_parameters(spec: WanSpec) -> int:
    s = spec.shape
    m, square = s.dim, s.dim * s.dim + s.dim
    attention = 4 * square + 2 * m
    block = 2 * attention + 2 * m + m * s.ffn + s.ffn + s.ffn * m + m + 6 * m
    text = s.text_dim * m + m + square
    time = s.freq_dim * m + m + square + 6 * square
    patch = s.channels * 4
    return s.layers * block + text + time + patch * m + m + m * patch + patch + 2 * m


def tiny_decoder(spec: WanSpec) -> Iterator[Conv]:
    """TAEHV's convolutions; a memory block keeps one frame of its input, which is half of what its first one reads."""
    widths, area, times = spec.tiny_widths, 1, 1
    yield Conv("in", 9, spec.vae.channels, widths[0], area, times)
    for level, inputs in enumerate(widths[:3]):
        for _ in range(3):
            yield Conv(f"{level}.memory", 9, 2 * inputs, inputs, area, times)
            yield Conv(f"{level}.b", 9, inputs, inputs, area, times)
            yield Conv(f"{level}.c", 9, inputs, inputs, area, times)
        stride = 1 if level == 0 else 2
        area *= 4
        yield Conv(f"{level}.grow", 1, inputs, inputs * stride, area, times)
        times *= stride
        yield Conv(f"{level}.out", 9, inputs, widths[level + 1], area, times)
    yield Conv("out", 9, widths[3], 3, area, times)


def tiny_parameters(spec: WanSpec) -> int:
    """Growing and widening convolutions have no bias."""
    biasless = (conv for conv in tiny_decoder(spec) if "." in conv.name and conv.name.split(".")[1] in ("grow", "out"))
    return sum(conv.parameters for conv in tiny_decoder(spec)) - sum(conv.outputs for conv in biasless)


def decoder_elements(spec: WanSpec) -> int:
    """Elements of the streaming decoder's feature cache of one session."""
    if spec.decoder is Decoder.VAE:
        return vae_footprint.cache_elements(spec.vae, spec.shape.rows, spec.shape.columns)
    memories = (conv for conv in tiny_decoder(spec) if conv.name.endswith("memory"))
    return sum(conv.inputs // 2 * conv.area for conv in memories) * spec.shape.rows * spec.shape.columns


def entry_elements(spec: WanSpec) -> int:
    """Elements of one ring entry: keys and values of one chunk in every layer."""
    plan = spec.rollout
    return max(plan.chunk, plan.context) * spec.shape.tokens * 2 * spec.shape.layers * spec.shape.dim


def carry_elements(spec: WanSpec) -> int:
    """Elements of the clean latents a session keeps."""
    plan = spec.plan
    kept = plan.kept_frames if isinstance(plan, Rollout) else 0
    return kept * spec.shape.channels * spec.shape.rows * spec.shape.columns


def pass_flop(spec: WanSpec, frames: int, past_frames: int) -> int:
    """FLOPs of one pass of the transformer over `frames` that see `past_frames` more; the prompt's keys are cached."""
    s = spec.shape
    tokens, keys = frames * s.tokens, (frames + past_frames) * s.tokens
    layer = 12 * tokens * s.dim * s.dim + 4 * tokens * keys * s.dim + 4 * tokens * s.text_length * s.dim
    layer += 4 * tokens * s.dim * s.ffn
    return s.layers * layer + 4 * tokens * s.dim * s.channels * 4 + 14 * frames * s.dim * s.dim


def decode_flop(spec: WanSpec, frames: int) -> int:
    if spec.decoder is Decoder.VAE:
        return vae_footprint.decode_flop(spec.vae, spec.shape.rows, spec.shape.columns, frames)
    each = sum(2 * c.kernel * c.inputs * c.outputs * c.area * c.times for c in tiny_decoder(spec))
    return each * spec.shape.rows * spec.shape.columns * frames


def parts(spec: WanSpec, bytes_per_parameter: float = 2.0) -> tuple[FootprintPart, ...]:
    """Weights that must be resident; the prompt's encoder counts although it may live elsewhere."""
    counts = [("transformer", transformer_parameters(spec)), ("vae", vae_footprint.vae_parameters(spec.vae))]
    if spec.decoder is Decoder.TINY:
        counts.append(("tiny_decoder", tiny_parameters(spec)))
    if not spec.random:
        counts.append(("text", vae_footprint.umt5_parameters()))
    return tuple(FootprintPart(part, count, bytes_per_parameter) for part, count in counts)


def account(spec: WanSpec) -> Footprint:
    """At a full window. Activations: the widest pair of tensors of a pass, or of the decoder's last level."""
    width, plan, s = 4 if spec.random else 2, spec.plan, spec.shape
    if isinstance(plan, Clip):
        passes = [StepCost("denoise", pass_flop(spec, plan.frames, 0), 2 * plan.steps[0], "transformer")]
        kv, narrow, seconds = 0, 0, (4 * plan.frames - 3) / spec.fps
    else:
        past = plan.context or plan.past_chunks * plan.chunk
        elements = (plan.past_chunks + 1 + plan.rebuild) * entry_elements(spec)
        window = plan.past_chunks * entry_elements(spec) * width
        passes = [StepCost("denoise", pass_flop(spec, plan.chunk, past), len(plan.sigmas), "transformer", window)]
        if plan.context:
            passes.append(StepCost("recache", pass_flop(spec, plan.context, 0), 1, "transformer"))
        else:
            passes.append(StepCost("commit", pass_flop(spec, plan.chunk, past), 1, "transformer", window))
        kv, narrow = elements * width, elements + elements // s.head_width * 4
        seconds = 4 * plan.chunk / spec.fps
    tokens = spec.chunk * s.tokens
    convs = vae_footprint.decoder(spec.vae) if spec.decoder is Decoder.VAE else tiny_decoder(spec)
    latent = s.rows * s.columns * min(spec.chunk, 3)
    widest = max((c.inputs + c.outputs) * c.area * c.times * latent for c in convs)
    activation = max(tokens * (s.ffn + 2 * s.dim) * width + tokens * 2 * s.dim * 4, widest * width)
    decoder, reads = decoder_elements(spec) * width, "vae" if spec.decoder is Decoder.VAE else "tiny_decoder"
    prompt = None if spec.random else StepCost("prompt_encode", vae_footprint.umt5_flop(s.text_length), 1, "text")
    return Footprint(
        parts(spec, width),
        (*passes, StepCost("decode", decode_flop(spec, spec.chunk), 1, reads, 2 * decoder)),
        kv,
        decoder,
        carry_elements(spec) * width,
        activation,
        seconds,
        narrow,
        prompt,
    )
