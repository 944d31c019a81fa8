"""The autoencoder of the driving world: 128x80 pictures to 40 tokens of 32 channels and back.

    picture [N, 3, 80, 128] in [-1, 1]  ->  latent [N, 8, 10, 16]  ->  tokens [N, 40, 32] (2x2 latent cells each)

Convolutions at strides 4 and 8 with pixel (un)shuffle; kernels are stored as matrices so that Muon can train
them. Latents have zero mean and unit variance per channel. Knows nothing of time, keys or prompts.

A picture's bits do not depend on those beside it: torch picks another convolution for one picture than for two, so the
served ones name oneDNN's, all pictures in a call where that makes no difference (kernels/row_grouping.py).
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ....kernels.row_grouping import ONEDNN, TOGETHER, alike, by_parts

TOKENS, CHANNELS = 40, 32
LATENT, LATENT_ROWS, LATENT_COLUMNS = 8, 10, 16
HEIGHT, WIDTH = 80, 128


class MatrixConv(nn.Module):
    """A same-size convolution whose kernel is kept as a matrix [out, in*k*k]."""

    def __init__(self, inputs: int, outputs: int, size: int = 3) -> None:
        super().__init__()
        kernel = nn.Conv2d(inputs, outputs, size).weight.data
        self.shape = (outputs, inputs, size, size)
        self.weight = nn.Parameter(kernel.reshape(outputs, -1).clone())
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Where gradients are recorded torch's own convolution runs."""
        weight = self.weight.view(self.shape)
        if torch.is_grad_enabled():
            return F.conv2d(x, weight, self.bias, padding=self.shape[-1] // 2)
        x = x.contiguous(memory_format=torch.channels_last)
        if len(x) == 1:
            return _convolved(x, weight, self.bias)
        together = _together(self.shape, x.shape[2:], torch.get_num_threads())
        return by_parts(lambda part: _convolved(part, weight, self.bias), x, 1, together)


def _convolved(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    side = weight.shape[-1] // 2
    if not ONEDNN:
        return F.conv2d(x, weight, bias, padding=side)
    made: Tensor = torch.mkldnn_convolution(x, weight, bias, [side, side], [1, 1], [1, 1], 1)
    return made


@lru_cache(maxsize=64)
def _together(shape: tuple[int, int, int, int], size: tuple[int, int], threads: int) -> bool:
    """Whether pictures of this size may share a call; `threads` because the answer depends on them."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(TOGETHER, shape[1], *size, generator=rng).contiguous(memory_format=torch.channels_last)
    weight, bias = torch.randn(shape, generator=rng), torch.randn(shape[0], generator=rng)
    return alike(lambda part: _convolved(part, weight, bias), x, 1)


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = MatrixConv(channels, channels), MatrixConv(channels, channels)
        self.second.weight.data.mul_(0.3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.second(F.silu(self.first(F.silu(x))))
        return x + y


class UnitVariance(nn.Module):
    """Each channel to zero mean and unit variance: of the batch in training, of running statistics after it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(self, x_NCHW: Tensor) -> Tensor:
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = x_NCHW.mean((0, 2, 3)), x_NCHW.var((0, 2, 3), unbiased=False)
            with torch.no_grad():
                self.mean.lerp_(mean, 0.02)
                self.variance.lerp_(variance, 0.02)
        return (x_NCHW - mean[:, None, None]) * torch.rsqrt(variance[:, None, None] + 1e-5)


class RoadEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inward = MatrixConv(48, 64, 1)
        self.down = MatrixConv(256, 128, 1)
        self.coarse = Residual(128)
        self.outward = MatrixConv(128, LATENT, 1)
        self.normal = UnitVariance(LATENT)

    def forward(self, picture: Tensor) -> Tensor:
        x = F.silu(self.inward(F.pixel_unshuffle(picture, 4)))
        x = self.coarse(self.down(F.pixel_unshuffle(x, 2)))
        latent: Tensor = self.normal(self.outward(F.silu(x)))
        return latent


class RoadDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inward = MatrixConv(LATENT, 128)
        self.coarse = Residual(128)
        self.up4 = MatrixConv(128, 256, 1)
        self.fine = Residual(64)
        self.up2 = MatrixConv(64, 128, 1)
        self.outward = MatrixConv(32, 12)

    def forward(self, latent: Tensor) -> Tensor:
        x = F.pixel_shuffle(self.up4(F.silu(self.coarse(self.inward(latent)))), 2)
        x = F.pixel_shuffle(self.up2(F.silu(self.fine(x))), 2)
        return F.pixel_shuffle(self.outward(F.silu(x)), 2)


class DriveAutoencoder(nn.Module):
    """Encoder and decoder; `encode` and `decode` speak tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = RoadEncoder(), RoadDecoder()

    def encode(self, picture_N3HW: Tensor) -> Tensor:
        """Pictures in [-1, 1] to tokens [N, 40, 32]."""
        return pack(self.encoder(picture_N3HW))

    def decode(self, tokens_NTC: Tensor) -> Tensor:
        """Tokens to pictures [N, 3, 80, 128], about [-1, 1], not clipped."""
        picture: Tensor = self.decoder(unpack(tokens_NTC).contiguous(memory_format=torch.channels_last))
        return picture


def pack(latent_NCHW: Tensor) -> Tensor:
    """[N, 8, 10, 16] to [N, 40, 32]: each token is a 2x2 block."""
    return F.pixel_unshuffle(latent_NCHW, 2).permute(0, 2, 3, 1).reshape(-1, TOKENS, CHANNELS)


def unpack(tokens_NTC: Tensor) -> Tensor:
    """Inverse of `pack`."""
    blocks = tokens_NTC.reshape(-1, LATENT_ROWS // 2, LATENT_COLUMNS // 2, CHANNELS)
    return F.pixel_shuffle(blocks.permute(0, 3, 1, 2), 2)


def to_model(frames_NHWC: Tensor) -> Tensor:
    """uint8 frames [N, 80, 128, 3] to pictures [N, 3, 80, 128] in [-1, 1]."""
    picture = frames_NHWC.permute(0, 3, 1, 2).float() / 127.5 - 1
    return picture.contiguous(memory_format=torch.channels_last)


def to_frames(picture_N3HW: Tensor) -> Tensor:
    """Pictures to uint8 frames [N, 80, 128, 3]."""
    levels = (picture_N3HW.float().clamp(-1, 1) + 1) * 127.5 + 0.5
    return levels.to(torch.uint8).permute(0, 2, 3, 1).contiguous()
