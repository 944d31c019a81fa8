"""Weights kept as 8-bit floats with a scale per output row: half the bytes of bf16.

    W [out, in]  ->  e4m3 [out, in], scale [out, 1] = largest |w| of the row / 448
    wide      y = x W'                W' = e4m3 * scale, in the dtype of x: runs anywhere, arithmetic as it was
    scaled    y = (x / sx) W8 sx s    both sides 8 bits, a scale for each row of x and of W (`torch._scaled_mm`): the
                                      device's own fp8 arithmetic, twice the rate of bf16

Both owe the same tolerance, which a card's recipe declares; a parity check runs each of them.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

FP8 = torch.float8_e4m3fn
LARGEST = torch.finfo(FP8).max
HOPPER = (9, 0)
"""The first devices with products of 8-bit floats that take a scale for every row."""
MULTIPLE = 16
"""Of both sides of a weight, for such a product."""


def computes(x: Tensor, weight_NK: Tensor) -> bool:
    """Whether the product of these should be computed in fp8 where they lie."""
    fits = all(size % MULTIPLE == 0 for size in weight_NK.shape)
    return x.is_cuda and fits and torch.cuda.get_device_capability(x.device) >= HOPPER


def scaled_linear(x: Tensor, weight_NK: Tensor, scale_N1: Tensor, bias_N: Tensor | None) -> Tensor:
    """A linear layer in fp8: x [..., K] gets a scale per row, so rows never feel each other. bf16, then as x was."""
    lines_MK = x.reshape(-1, x.shape[-1]).float()
    scale_M1 = lines_MK.abs().amax(1, keepdim=True).clamp_min(1e-12) / LARGEST
    made_MN: Tensor = torch._scaled_mm(
        (lines_MK / scale_M1).to(FP8),
        weight_NK.t(),
        scale_a=scale_M1,
        scale_b=scale_N1.t().contiguous(),
        bias=None if bias_N is None else bias_N.to(torch.bfloat16),
        out_dtype=torch.bfloat16,
    )
    return made_MN.to(x.dtype).reshape(*x.shape[:-1], -1)


class Fp8Linear(nn.Module):
    """A linear layer whose weight is widened when it is used, or multiplied as it is where `computed` says so."""

    weight: Tensor
    scale: Tensor

    def __init__(self, linear: nn.Linear, computed: Callable[[Tensor, Tensor], bool] = computes) -> None:
        super().__init__()
        wide = linear.weight.detach().float()
        scale = wide.abs().amax(1, keepdim=True).clamp_min(1e-12) / LARGEST
        self.register_buffer("weight", (wide / scale).to(FP8))
        self.register_buffer("scale", scale)
        self.bias, self._computed = linear.bias, computed

    def forward(self, x: Tensor) -> Tensor:
        if self._computed(x, self.weight):
            return scaled_linear(x, self.weight, self.scale, self.bias)
        weight = (self.weight.float() * self.scale).to(x.dtype)
        return F.linear(x, weight, self.bias)


def narrow(module: nn.Module, computed: Callable[[Tensor, Tensor], bool] = computes) -> int:
    """Replace every linear layer within a module; returns how many. Load and merge first: it cannot be undone."""
    count = 0
    for parent in [*module.modules()]:
        for name, child in [*parent.named_children()]:
            if isinstance(child, nn.Linear):
                setattr(parent, name, Fp8Linear(child, computed))
                count += 1
    return count
