"""Bytes and FLOPs of a Wan card from its sizes alone, and the element counts its cache is declared with.

A multiply and an add are two FLOPs. Keys of a pass count the past, so denoise passes are priced at a full window.
Knows no tensor library; a test compares every count with the modules themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..contract.account import Account, Part, StepCost
from .spec import Clip, Decoder, Rollout, WanSpec

_UMT5_XXL = 256384 * 4096 + 24 * (4 * 4096 * 4096 + 3 * 4096 * 10240 + 2 * 4096 + 32 * 64) + 4096


@dataclass(frozen=True, slots=True)
class Conv:
    """One convolution of a decoder: kernel volume, channels, and the frame grid it writes, relative to a latent frame.

    `area`: positions per latent position; `times`: frames per latent frame; `cached`: frames of its input kept between chunks.
    """

    name: str
    kernel: int
    inputs: int
    outputs: int
    area: int
    times: int
    cached: int = 0
    bias: bool = True

    @property
    def parameters(self) -> int:
        return self.kernel * self.inputs * self.outputs + (self.outputs if self.bias else 0)


def transformer_parameters(spec: WanSpec) -> int:
    s = spec.shape
    m, square = s.dim, s.dim * s.dim + s.dim
    attention = 4 * square + 2 * m
    block = 2 * attention + 2 * m + m * s.ffn + s.ffn + s.ffn * m + m + 6 * m
    text = s.text_dim * m + m + square
    time = s.freq_dim * m + m + square + 6 * square
    patch = s.channels * 4
    return s.layers * block + text + time + patch * m + m + m * patch + patch + 2 * m


def vae_decoder(spec: WanSpec) -> Iterator[Conv]:
    """The convolutions of Wan's decoder in order; norms are left out of FLOPs and counted by `_norms`."""
    v = spec.vae
    widths = [v.width * u for u in (v.multipliers[-1], *reversed(v.multipliers))]
    up = tuple(reversed(v.temporal_down))
    yield Conv("conv2", 1, v.channels, v.channels, 1, 1)
    yield Conv("conv1", 27, v.channels, widths[0], 1, 1, cached=2)
    for name in ("middle.0", "middle.2"):
        yield from _residual(name, widths[0], widths[0], 1, 1)
    yield Conv("middle.1.to_qkv", 1, widths[0], 3 * widths[0], 1, 1)
    yield Conv("middle.1.proj", 1, widths[0], widths[0], 1, 1)
    area, times = 1, 1
    for level, (inputs, outputs) in enumerate(zip(widths[:-1], widths[1:], strict=True)):
        inputs = inputs // 2 if level else inputs
        for _ in range(v.blocks + 1):
            yield from _residual(f"up.{level}", inputs, outputs, area, times)
            inputs = outputs
        if level < len(widths) - 2:
            if up[level]:
                yield Conv(f"up.{level}.time", 3, outputs, 2 * outputs, area, times, cached=2)
                times *= 2
            area *= 4
            yield Conv(f"up.{level}.space", 9, outputs, outputs // 2, area, times)
    yield Conv("head", 27, widths[-1], 3, area, times, cached=2)


def _residual(name: str, inputs: int, outputs: int, area: int, times: int) -> Iterator[Conv]:
    yield Conv(f"{name}.a", 27, inputs, outputs, area, times, cached=2)
    yield Conv(f"{name}.b", 27, outputs, outputs, area, times, cached=2)
    if inputs != outputs:
        yield Conv(f"{name}.shortcut", 1, inputs, outputs, area, times)


def tiny_decoder(spec: WanSpec) -> Iterator[Conv]:
    """TAEHV's convolutions; a memory block keeps one frame of its input."""
    widths, area, times = spec.vae.tiny_widths, 1, 1
    yield Conv("in", 9, spec.vae.channels, widths[0], area, times)
    for level, inputs in enumerate(widths[:3]):
        for _ in range(3):
            yield Conv(f"{level}.memory", 9, 2 * inputs, inputs, area, times)
            yield Conv(f"{level}.b", 9, inputs, inputs, area, times)
            yield Conv(f"{level}.c", 9, inputs, inputs, area, times)
        stride = 1 if level == 0 else 2
        area *= 4
        yield Conv(f"{level}.grow", 1, inputs, inputs * stride, area, times, bias=False)
        times *= stride
        yield Conv(f"{level}.out", 9, inputs, widths[level + 1], area, times, bias=False)
    yield Conv("out", 9, widths[3], 3, area, times)


def decoder_elements(spec: WanSpec) -> int:
    """Elements of the streaming decoder's feature cache of one session."""
    latent = spec.shape.rows * spec.shape.columns
    if spec.decoder is Decoder.VAE:
        return sum(conv.cached * conv.inputs * conv.area * latent for conv in vae_decoder(spec))
    memories = (conv for conv in tiny_decoder(spec) if conv.name.endswith("memory"))
    return sum(conv.inputs // 2 * conv.area * latent for conv in memories)


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
    convs = vae_decoder(spec) if spec.decoder is Decoder.VAE else tiny_decoder(spec)
    latent = spec.shape.rows * spec.shape.columns * frames
    return sum(2 * c.kernel * c.inputs * c.outputs * c.area * c.times * latent for c in convs)


def parts(spec: WanSpec, bytes_per_parameter: float = 2.0) -> tuple[Part, ...]:
    """Weights that must be resident; the prompt's encoder counts although it may live elsewhere."""
    decoder = vae_decoder(spec) if spec.decoder is Decoder.VAE else tiny_decoder(spec)
    name = "vae" if spec.decoder is Decoder.VAE else "tiny_decoder"
    counts = [("transformer", transformer_parameters(spec)), (name, sum(c.parameters for c in decoder))]
    if not spec.random:
        counts.append(("text", _UMT5_XXL))
    return tuple(Part(part, count, bytes_per_parameter) for part, count in counts)


def account(spec: WanSpec) -> Account:
    """At a full window. Activations: the widest pair of tensors of a pass, or of the decoder's last level."""
    width, plan, s = 4 if spec.random else 2, spec.plan, spec.shape
    if isinstance(plan, Clip):
        steps = (
            StepCost("denoise", pass_flop(spec, plan.frames, 0), 2 * plan.steps[0]),
            StepCost("decode", decode_flop(spec, plan.frames), 1),
        )
        kv, seconds = 0, (4 * plan.frames - 3) / spec.fps
    else:
        past = plan.context or plan.past_chunks * plan.chunk
        passes = [StepCost("denoise", pass_flop(spec, plan.chunk, past), len(plan.sigmas))]
        if plan.context:
            passes.append(StepCost("recache", pass_flop(spec, plan.context, 0), 1))
        else:
            passes.append(StepCost("commit", pass_flop(spec, plan.chunk, past), 1))
        steps = (*passes, StepCost("decode", decode_flop(spec, plan.chunk), 1))
        rebuild = plan.past_chunks - plan.sink_chunks if plan.recache else 0
        kv = (plan.past_chunks + 1 + rebuild) * entry_elements(spec) * width
        seconds = 4 * plan.chunk / spec.fps
    tokens = spec.chunk * s.tokens
    convs = vae_decoder(spec) if spec.decoder is Decoder.VAE else tiny_decoder(spec)
    latent = s.rows * s.columns * min(spec.chunk, 3)
    widest = max((c.inputs + c.outputs) * c.area * c.times * latent for c in convs)
    activation = max(tokens * (s.ffn + 2 * s.dim) * width + tokens * 2 * s.dim * 4, widest * width)
    return Account(
        parts(spec, width), steps, kv, decoder_elements(spec) * width, carry_elements(spec) * width, activation, seconds
    )
