"""TAEHV, the tiny decoder of Wan 2.1 latents: a picture is made in a fraction of the VAE's time, less exactly.

Frames pass one after another through 2-d convolutions; a memory block also sees its own input of the frame before.
The last inputs are the `Features` that come in and go out. Parameters are named as in `taew2_1.pth` (its decoder).

Legend: T frames, C channels, H W rows and columns. Source: github.com/madebyollin/taehv (its published architecture).
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..shared.video.vae import Features

TRIMMED = 3  # the first latent frame stands for one picture, not four


def _conv(inputs: int, outputs: int, bias: bool = True) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, padding=1, bias=bias)


class Soft(nn.Module):
    """A gentle clamp to (-3, 3)."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x / 3) * 3


class Memory(nn.Module):
    """A residual block that sees its input and the one before."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            _conv(2 * width, width), nn.ReLU(), _conv(width, width), nn.ReLU(), _conv(width, width)
        )

    def forward(self, x_TCHW: Tensor, before_1CHW: Tensor) -> Tensor:
        before = torch.cat((before_1CHW, x_TCHW[:-1]))
        y: Tensor = F.relu(self.conv(torch.cat((x_TCHW, before), 1)) + x_TCHW)
        return y


class Grow(nn.Module):
    """One frame becomes `stride` frames."""

    def __init__(self, width: int, stride: int) -> None:
        super().__init__()
        self._stride = stride
        self.conv = nn.Conv2d(width, width * stride, 1, bias=False)

    def forward(self, x_TCHW: Tensor) -> Tensor:
        y: Tensor = self.conv(x_TCHW)
        return y.reshape(-1, *x_TCHW.shape[1:])


class TinyDecoder(nn.Module):
    """See the module docstring."""

    def __init__(self, channels: int, widths: tuple[int, int, int, int]) -> None:
        super().__init__()
        a, b, c, d = widths
        layers: list[nn.Module] = [Soft(), _conv(channels, a), nn.ReLU()]
        for width, wider, stride in ((a, b, 1), (b, c, 2), (c, d, 2)):
            layers += [Memory(width), Memory(width), Memory(width), nn.Upsample(scale_factor=2.0)]
            layers += [Grow(width, stride), _conv(width, wider, bias=False)]
        self.decoder = nn.Sequential(*layers, nn.ReLU(), _conv(d, 3))

    def decode(self, latent_1CFHW: Tensor, features: Features) -> tuple[Tensor, Features]:
        """Pictures [1, 3, T, 8H, 8W] in about [-1, 1] of one row, T = 4F (4F - 3 when features is ())."""
        x = latent_1CFHW[0].transpose(0, 1).to(next(self.decoder.parameters()).dtype)
        old: Iterator[Tensor] = iter(features)
        new: list[Tensor] = []
        for layer in self.decoder:
            if isinstance(layer, Memory):
                before = next(old) if features else torch.zeros_like(x[:1])
                new.append(x[-1:].clone())
                x = layer(x, before)
            else:
                x = layer(x)
        picture = x if features else x[TRIMMED:]
        return (picture * 2 - 1).transpose(0, 1)[None], tuple(new)
