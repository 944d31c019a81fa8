"""A network whose rows share a pass and never feel it: each has the bits it has alone, whatever the batch.

    linear layers    products of fixed tiles (kernels/invariant_matmul): on a CPU all tokens of a row are one tile
    activations      one row at a time: a vectorised loop takes its last elements another way, so where it ends must
                     not depend on how many rows there are
    the rest         norms, gates and attention of kernels/ keep rows apart anyway; single sums and products are exact

Forms are put in place of layers by name; torch itself stays as it is. Knows no family.

Legend: B rows, T tokens of a row, K inputs.
"""

import torch
from torch import Tensor, nn

from ...kernels.invariant_matmul import invariant_linear
from .fp8 import Fp8Linear


class InvariantLinear(nn.Module):
    """The weights of a linear layer, under the names they had."""

    def __init__(self, layer: nn.Linear | Fp8Linear) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.scale = layer.scale if isinstance(layer, Fp8Linear) else None

    def forward(self, x_BTK: Tensor) -> Tensor:
        """Without tokens [B, K] every row is a tile."""
        weight = self.weight if self.scale is None else (self.weight.float() * self.scale).to(x_BTK.dtype)
        return invariant_linear(x_BTK, weight, self.bias, tile=x_BTK.shape[1] if x_BTK.ndim > 2 else 1)


class EachRow(nn.Module):
    """An activation or a convolution of every row [B, ...] by itself."""

    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.activation(row[None]) for row in x]) if len(x) else x


def make_invariant(module: nn.Module, alone: tuple[type[nn.Module], ...] = ()) -> int:
    """Replace every linear layer and activation within a module; returns how many. Load, merge and narrow first.

    `alone`: other parts that take each row by itself, with all that is in them.
    """
    count = 0
    for parent in [*module.modules()]:
        for name, child in [*parent.named_children()]:
            match child:
                case nn.Linear() | Fp8Linear():
                    setattr(parent, name, InvariantLinear(child))
                case nn.GELU() | nn.SiLU():
                    setattr(parent, name, EachRow(child))
                case _ if isinstance(child, alone):
                    setattr(parent, name, EachRow(child))
                case _:
                    continue
            count += 1
    return count
