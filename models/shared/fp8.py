"""Weights kept as 8-bit floats with a scale per output row: half the bytes of bf16, the arithmetic stays as it was.

W [out, in]  ->  e4m3 [out, in], scale [out, 1] = largest |w| of the row / 448
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LARGEST = torch.finfo(torch.float8_e4m3fn).max


class Fp8Linear(nn.Module):
    """A linear layer whose weight is widened when it is used."""

    weight: Tensor
    scale: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        wide = linear.weight.detach().float()
        scale = wide.abs().amax(1, keepdim=True).clamp_min(1e-12) / LARGEST
        self.register_buffer("weight", (wide / scale).to(torch.float8_e4m3fn))
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        weight = (self.weight.float() * self.scale).to(x.dtype)
        return F.linear(x, weight, self.bias)


def narrow(module: nn.Module) -> int:
    """Replace every linear layer within a module; returns how many. Load and merge first: it cannot be undone."""
    count = 0
    for parent in [*module.modules()]:
        for name, child in [*parent.named_children()]:
            if isinstance(child, nn.Linear):
                setattr(parent, name, Fp8Linear(child))
                count += 1
    return count
