"""Wan's causal video autoencoder counted from its sizes: parameters, FLOPs, and what its streaming decoder keeps.

A multiply and an add are two FLOPs; norms are counted as parameters and left out of FLOPs. Knows no tensor library.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class VaeSizes:
    width: int = 96
    multipliers: tuple[int, ...] = (1, 2, 4, 4)
    blocks: int = 2
    channels: int = 16
    temporal_down: tuple[bool, ...] = (False, True, True)


@dataclass(frozen=True, slots=True)
class Conv:
    """One convolution: kernel volume, channels, and the frame grid it writes, relative to a latent frame.

    `area`: positions per latent position; `times`: frames per latent frame; `cached`: frames of its input kept between
    chunks; `norm`: channels of the norm before it.
    """

    name: str
    kernel: int
    inputs: int
    outputs: int
    area: int
    times: int
    cached: int = 0
    norm: int = 0

    @property
    def parameters(self) -> int:
        return self.kernel * self.inputs * self.outputs + self.outputs + self.norm


def decoder(sizes: VaeSizes) -> Iterator[Conv]:
    """The decoder's convolutions in order, the mixing of latent channels before it included."""
    widths = [sizes.width * u for u in (sizes.multipliers[-1], *reversed(sizes.multipliers))]
    up = tuple(reversed(sizes.temporal_down))
    yield Conv("conv2", 1, sizes.channels, sizes.channels, 1, 1)
    yield Conv("conv1", 27, sizes.channels, widths[0], 1, 1, cached=2)
    yield from _middle(widths[0])
    area, times = 1, 1
    for level, (inputs, outputs) in enumerate(pairwise(widths)):
        inputs = inputs // 2 if level else inputs
        for _ in range(sizes.blocks + 1):
            yield from _residual(f"up.{level}", inputs, outputs, area, times)
            inputs = outputs
        if level < len(up):
            if up[level]:
                yield Conv(f"up.{level}.time", 3, outputs, 2 * outputs, area, times, cached=2)
                times *= 2
            area *= 4
            yield Conv(f"up.{level}.space", 9, outputs, outputs // 2, area, times)
    yield Conv("head", 27, widths[-1], 3, area, times, cached=2, norm=widths[-1])


def encoder(sizes: VaeSizes) -> Iterator[Conv]:
    """The encoder's convolutions; grids as the decoder's, so `area * times` counts what one latent frame costs."""
    widths = [sizes.width * u for u in (1, *sizes.multipliers)]
    levels = len(sizes.multipliers) - 1
    area, times = 4**levels, 2 ** sum(sizes.temporal_down)
    yield Conv("conv1", 27, 3, widths[0], area, times)
    for level, (inputs, outputs) in enumerate(pairwise(widths)):
        for _ in range(sizes.blocks):
            yield from _residual(f"down.{level}", inputs, outputs, area, times)
            inputs = outputs
        if level < levels:
            area //= 4
            yield Conv(f"down.{level}.space", 9, outputs, outputs, area, times)
            if sizes.temporal_down[level]:
                times //= 2
                yield Conv(f"down.{level}.time", 3, outputs, outputs, area, times)
    yield from _middle(widths[-1])
    yield Conv("head", 27, widths[-1], 2 * sizes.channels, 1, 1, norm=widths[-1])
    yield Conv("conv1.mix", 1, 2 * sizes.channels, 2 * sizes.channels, 1, 1)


def decoder_parameters(sizes: VaeSizes) -> int:
    return sum(conv.parameters for conv in decoder(sizes))


def vae_parameters(sizes: VaeSizes) -> int:
    return decoder_parameters(sizes) + sum(conv.parameters for conv in encoder(sizes))


def cache_elements(sizes: VaeSizes, rows: int, columns: int) -> int:
    """Elements of the streaming decoder's feature cache of one session."""
    return sum(conv.cached * conv.inputs * conv.area for conv in decoder(sizes)) * rows * columns


def decode_flop(sizes: VaeSizes, rows: int, columns: int, frames: int) -> int:
    """FLOPs of decoding that many latent frames."""
    each = sum(2 * c.kernel * c.inputs * c.outputs * c.area * c.times for c in decoder(sizes))
    return each * rows * columns * frames


def umt5_parameters(width: int = 4096, layers: int = 24, ffn: int = 10240, words: int = 256384, heads: int = 64) -> int:
    """UMT5's encoder (2304.09151): every layer has its own relative positions, 32 buckets a head."""
    layer = 4 * width * width + 3 * width * ffn + 2 * width + 32 * heads
    return words * width + layers * layer + width


def umt5_flop(tokens: int, width: int = 4096, layers: int = 24, ffn: int = 10240) -> int:
    """FLOPs of encoding so many tokens."""
    return layers * (2 * tokens * (4 * width * width + 3 * width * ffn) + 4 * tokens * tokens * width)


def _middle(width: int) -> Iterator[Conv]:
    yield from _residual("middle.0", width, width, 1, 1)
    yield Conv("middle.1.to_qkv", 1, width, 3 * width, 1, 1, norm=width)
    yield Conv("middle.1.proj", 1, width, width, 1, 1)
    yield from _residual("middle.2", width, width, 1, 1)


def _residual(name: str, inputs: int, outputs: int, area: int, times: int) -> Iterator[Conv]:
    yield Conv(f"{name}.a", 27, inputs, outputs, area, times, cached=2, norm=inputs)
    yield Conv(f"{name}.b", 27, outputs, outputs, area, times, cached=2, norm=outputs)
    if inputs != outputs:
        yield Conv(f"{name}.shortcut", 1, inputs, outputs, area, times)
