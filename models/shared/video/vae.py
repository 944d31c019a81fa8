"""Wan's causal video autoencoder, streaming: pictures to latents and back, a few frames at a time.

    decode   latent frames  1 2 3 | 4 5 6 | ...     pictures  1+4+4 | 4+4+4 | ...
Every convolution over time sees the last two frames of its own input from the call before; they are the `Features` that
come in and go out. Nothing is kept in the modules. Parameters are named as in the published checkpoint.

Legend of video tensors: B C T H W. Source: Wan 2.1 (2503.20314, section 4.1).
"""

from itertools import pairwise
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .vae_footprint import VaeSizes

Features: TypeAlias = tuple[Tensor, ...]  # in order of use; () = a video begins

_MEAN = (
    -0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508,
    0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921,
)  # fmt: skip
_STD = (
    2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
    3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160,
)  # fmt: skip


class Stream:
    """Hands each convolution the end of its earlier input, and collects the new ends."""

    def __init__(self, features: Features) -> None:
        self.opens = not features
        self._old = iter(features)
        self.new: list[Tensor] = []

    def extended(self, x_BCTHW: Tensor, frames: int) -> Tensor:
        """`x` with the `frames` frames before it in front; zeros when the video begins."""
        past = x_BCTHW.new_zeros(*x_BCTHW.shape[:2], frames, *x_BCTHW.shape[3:]) if self.opens else next(self._old)
        whole = torch.cat((past, x_BCTHW), 2)
        self.new.append(whole[:, :, -frames:].clone())
        return whole

    def take(self) -> Tensor:
        return next(self._old)


class CausalConv3d(nn.Conv3d):
    """A convolution that pads the picture on all sides and time with the past alone."""

    def __init__(self, inputs: int, outputs: int, size: tuple[int, int, int], stride: int = 1) -> None:
        super().__init__(inputs, outputs, size, stride=(stride, 1, 1))
        self._past, self._edge = size[0] - 1, size[1] // 2

    def streamed(self, x: Tensor, stream: Stream) -> Tensor:
        return self.plain(stream.extended(x, self._past) if self._past else x)

    def plain(self, x: Tensor) -> Tensor:
        edge = self._edge
        if x.device.type == "cpu" and self._past:
            return self._by_pictures(x)
        return F.conv3d(x, self.weight, self.bias, self.stride, (0, edge, edge))

    def _by_pictures(self, x: Tensor) -> Tensor:
        """The same sums as one 2-d convolution over stacked frames: several times faster on a CPU."""
        taps, frames, stride = self.kernel_size[0], x.shape[2] - self._past, self.stride[0]
        pictures = x.transpose(1, 2)
        stacked = torch.cat([pictures[:, tap : tap + frames : stride] for tap in range(taps)], 2)
        weight = self.weight.transpose(1, 2).flatten(1, 2)
        return _video(F.conv2d(stacked.flatten(0, 1), weight, self.bias, padding=self._edge), x.shape[0])


class RMSNorm(nn.Module):
    """Unit RMS over channels, scaled by gamma [C, 1, 1] (pictures) or [C, 1, 1, 1] (video)."""

    def __init__(self, channels: int, video: bool) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels, 1, 1, 1) if video else torch.ones(channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = F.normalize(x, dim=1) * x.shape[1] ** 0.5 * self.gamma
        return y


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        cube = (3, 3, 3)
        self.residual = nn.Sequential(
            RMSNorm(inputs, True), nn.SiLU(), CausalConv3d(inputs, outputs, cube),
            RMSNorm(outputs, True), nn.SiLU(), nn.Identity(), CausalConv3d(outputs, outputs, cube),
        )  # fmt: skip
        self.shortcut = CausalConv3d(inputs, outputs, (1, 1, 1)) if inputs != outputs else None

    def forward(self, x: Tensor, stream: Stream) -> Tensor:
        norm1, norm2, conv1, conv2 = (self.residual[i] for i in (0, 3, 2, 6))
        y = _streamed(conv1, F.silu(norm1(x)), stream)
        y = _streamed(conv2, F.silu(norm2(y)), stream)
        z: Tensor = y + (x if self.shortcut is None else self.shortcut.plain(x))
        return z


class AttentionBlock(nn.Module):
    """One head over the positions of each picture."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = RMSNorm(channels, False)
        self.to_qkv, self.proj = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor, stream: Stream) -> Tensor:
        pictures = x.transpose(1, 2).flatten(0, 1)
        q, k, v = self.to_qkv(self.norm(pictures)).flatten(2).transpose(1, 2)[:, None].chunk(3, dim=-1)
        y = F.scaled_dot_product_attention(q, k, v)[:, 0].transpose(1, 2).reshape(pictures.shape)
        z: Tensor = x + _video(self.proj(y), x.shape[0])
        return z


class Upsample(nn.Module):
    """Twice the picture; with `temporal` also twice the frames, but for the very first one."""

    def __init__(self, channels: int, temporal: bool) -> None:
        super().__init__()
        up = nn.Upsample(scale_factor=2.0, mode="nearest-exact")
        self.resample = nn.Sequential(up, nn.Conv2d(channels, channels // 2, 3, padding=1))
        self.time_conv = CausalConv3d(channels, 2 * channels, (3, 1, 1)) if temporal else None

    def forward(self, x: Tensor, stream: Stream) -> Tensor:
        if self.time_conv is not None:
            first = 1 if stream.opens else 0
            whole = stream.extended(x[:, :, first:], 2)
            if x.shape[2] > first:
                y = torch.stack(self.time_conv.plain(whole).chunk(2, dim=1), 3)  # [B, C, T, 2, H, W]
                x = torch.cat((x[:, :, :first], y.flatten(2, 3)), 2)
        return _each_picture(self.resample, x)


class Downsample(nn.Module):
    """Half the picture; with `temporal` also half the frames, but for the very first one."""

    def __init__(self, channels: int, temporal: bool) -> None:
        super().__init__()
        self.resample = nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(channels, channels, 3, stride=2))
        self.time_conv = CausalConv3d(channels, channels, (3, 1, 1), stride=2) if temporal else None

    def forward(self, x: Tensor, stream: Stream) -> Tensor:
        x = _each_picture(self.resample, x)
        if self.time_conv is None:
            return x
        whole = x if stream.opens else torch.cat((stream.take(), x), 2)
        stream.new.append(x[:, :, -1:].clone())
        return x if stream.opens else self.time_conv.plain(whole)


class Decoder(nn.Module):
    def __init__(self, shape: VaeSizes) -> None:
        super().__init__()
        widths = [shape.width * u for u in (shape.multipliers[-1], *reversed(shape.multipliers))]
        up = tuple(reversed(shape.temporal_down))
        self.conv1 = CausalConv3d(shape.channels, widths[0], (3, 3, 3))
        self.middle = _middle(widths[0])
        layers: list[nn.Module] = []
        for level, (inputs, outputs) in enumerate(pairwise(widths)):
            inputs = inputs // 2 if level else inputs
            for _ in range(shape.blocks + 1):
                layers.append(ResidualBlock(inputs, outputs))
                inputs = outputs
            if level < len(up):
                layers.append(Upsample(outputs, up[level]))
        self.upsamples = nn.Sequential(*layers)
        self.head = nn.Sequential(RMSNorm(widths[-1], True), nn.SiLU(), CausalConv3d(widths[-1], 3, (3, 3, 3)))

    def forward(self, x: Tensor, stream: Stream) -> Tensor:
        x = self.conv1.streamed(x, stream)
        for layer in (*self.middle, *self.upsamples):
            x = layer(x, stream)
        y: Tensor = _streamed(self.head[2], F.silu(self.head[0](x)), stream)
        return y


class Encoder(nn.Module):
    def __init__(self, shape: VaeSizes) -> None:
        super().__init__()
        widths = [shape.width * u for u in (1, *shape.multipliers)]
        self.conv1 = CausalConv3d(3, widths[0], (3, 3, 3))
        layers: list[nn.Module] = []
        for level, (inputs, outputs) in enumerate(pairwise(widths)):
            for _ in range(shape.blocks):
                layers.append(ResidualBlock(inputs, outputs))
                inputs = outputs
            if level < len(shape.temporal_down):
                layers.append(Downsample(outputs, shape.temporal_down[level]))
        self.downsamples = nn.Sequential(*layers)
        self.middle = _middle(widths[-1])
        self.head = nn.Sequential(
            RMSNorm(widths[-1], True), nn.SiLU(), CausalConv3d(widths[-1], 2 * shape.channels, (3, 3, 3))
        )

    def forward(self, x: Tensor, stream: Stream) -> Tensor:
        x = self.conv1.streamed(x, stream)
        for layer in (*self.downsamples, *self.middle):
            x = layer(x, stream)
        y: Tensor = _streamed(self.head[2], F.silu(self.head[0](x)), stream)
        return y


class WanVae(nn.Module):
    """Latents outside are normalised: zero mean, unit variance per channel."""

    def __init__(self, shape: VaeSizes) -> None:
        super().__init__()
        self.encoder, self.decoder = Encoder(shape), Decoder(shape)
        self.conv1 = nn.Conv3d(2 * shape.channels, 2 * shape.channels, 1)
        self.conv2 = nn.Conv3d(shape.channels, shape.channels, 1)

    def decode(self, latent_BCFHW: Tensor, features: Features) -> tuple[Tensor, Features]:
        """Pictures [B, 3, T, 8H, 8W] in about [-1, 1], T = 4F (4F - 3 when features is ()), and the next features."""
        stream = Stream(features)
        latent = latent_BCFHW * _channels(_STD, latent_BCFHW) + _channels(_MEAN, latent_BCFHW)
        picture = self.decoder(self.conv2(latent.to(self.conv2.weight.dtype)), stream)
        return picture, tuple(stream.new)

    def encode(self, picture_B3THW: Tensor) -> Tensor:
        """Mean latents [B, C, F, H / 8, W / 8] in float32 of a whole video of T = 4F - 3 pictures in [-1, 1]."""
        if picture_B3THW.shape[2] % 4 != 1:
            raise ValueError(f"{picture_B3THW.shape[2]} frames: a video of 1, 5, 9, ... frames is needed")
        features: Features = ()
        parts = []
        whole = picture_B3THW.to(self.conv1.weight.dtype)
        for part in torch.split(whole, [1] + [4] * (whole.shape[2] // 4), 2):
            stream = Stream(features)
            parts.append(self.encoder(part, stream))
            features = tuple(stream.new)
        mean = self.conv1(torch.cat(parts, 2)).chunk(2, dim=1)[0].float()
        latent: Tensor = (mean - _channels(_MEAN, mean)) / _channels(_STD, mean)
        return latent


def _streamed(conv: nn.Module, x: Tensor, stream: Stream) -> Tensor:
    if not isinstance(conv, CausalConv3d):
        raise TypeError(f"{type(conv).__name__} keeps no past")
    return conv.streamed(x, stream)


def _channels(values: tuple[float, ...], like: Tensor) -> Tensor:
    return torch.tensor(values, dtype=torch.float32, device=like.device).view(1, -1, 1, 1, 1)


def _middle(width: int) -> nn.Sequential:
    return nn.Sequential(ResidualBlock(width, width), AttentionBlock(width), ResidualBlock(width, width))


def _each_picture(layer: nn.Module, x: Tensor) -> Tensor:
    return _video(layer(x.transpose(1, 2).flatten(0, 1)), x.shape[0])


def _video(pictures: Tensor, rows: int) -> Tensor:
    """[B * T, C, H, W] to [B, C, T, H, W]."""
    return pictures.reshape(rows, -1, *pictures.shape[1:]).transpose(1, 2)
