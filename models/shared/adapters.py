"""Adapters beside a network's linear layers, unfused: rows with different stacks share the pass of the layer itself.

    y_row = W x_row + B (A x_row)      A, B: all pairs of the row's stack, side by side; B times alpha / rank * scale

The layer's own product is one for all rows; the narrow ones are made row by row where bits must not depend on the
batch, else once for all rows of equal stacks. Layers are replaced when the first adapter comes: a card without any runs
as it was written. Which row has which stack is said for one pass at a time, on the device's thread.

Legend: B rows, T tokens, K inputs, N outputs, R ranks of a stack together.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...kernels.invariant_matmul import invariant_linear
from ...kernels.upload import upload
from ..contract.adapters import Adapter
from ..contract.conditions import AdapterShare
from .fp8 import Fp8Linear
from .invariant import InvariantLinear
from .lora_file import Aliases, LowRank, layers_of, read_file

STACKS_KEPT = 16
"""Stacks whose pairs lie together, ready for a pass."""
Stack = tuple[AdapterShare, ...]
Narrow = Mapping[str, tuple[Tensor, Tensor]]


class UnknownAdapter(LookupError):
    """A row names an adapter that is not attached."""


@dataclass(slots=True)
class RowStacks:
    """Of the pass that runs: which rows have which pairs. Empty between passes."""

    groups: tuple[tuple[tuple[int, ...], Narrow], ...] = ()


class AdaptedLinear(nn.Module):
    """A layer [B, T, K] -> [B, T, N] of the network, and what the stacks of its rows add."""

    def __init__(self, layer: nn.Module, name: str, stacks: RowStacks, each_row: bool) -> None:
        super().__init__()
        self.layer = layer
        self._name, self._stacks, self._each_row = name, stacks, each_row

    def forward(self, x_BTK: Tensor) -> Tensor:
        y_BTN: Tensor = self.layer(x_BTK)
        for rows, narrow in self._stacks.groups:
            if (pair := narrow.get(self._name)) is None:
                continue
            a_RK, b_NR = pair
            if self._each_row:
                for row in rows:
                    y_BTN[row] += _exactly(x_BTK[row], a_RK, b_NR)
            elif len(rows) == len(x_BTK):
                y_BTN += F.linear(F.linear(x_BTK, a_RK), b_NR)
            else:
                index = upload(torch.tensor(rows), x_BTK.device)
                y_BTN.index_add_(0, index, F.linear(F.linear(x_BTK.index_select(0, index), a_RK), b_NR))
        return y_BTN


def _exactly(x_TK: Tensor, a_RK: Tensor, b_NR: Tensor) -> Tensor:
    """The same bits whatever stands beside the row."""
    tokens = len(x_TK)
    return invariant_linear(invariant_linear(x_TK, a_RK, None, tile=tokens), b_NR, None, tile=tokens)


class Adapters:
    """Of one network; implements `contract.adapters.AdapterHost`. `within`: the part whose layers take adapters."""

    def __init__(self, within: nn.Module, prefix: str, aliases: Aliases, dtype: torch.dtype, each_row: bool) -> None:
        """`aliases`: other names of a layer. `each_row`: no row's bits depend on its batch."""
        self._within, self._prefix, self._aliases = within, prefix, aliases
        self._dtype, self._each_row = dtype, each_row
        self._layers = {f"{prefix}{name}": shape for name, shape in layers_of(within).items()}
        self._stacks, self._attached = RowStacks(), dict[str, LowRank]()
        self._ready: OrderedDict[Stack, Narrow] = OrderedDict()
        self._installed = False

    def read(self, file: Path) -> LowRank:
        """Raises `BadAdapter`."""
        return read_file(file, self._layers, self._aliases)

    def attach(self, key: str, adapter: Adapter) -> None:
        if not isinstance(adapter, LowRank):
            raise TypeError(f"an adapter is a LowRank, got {type(adapter).__name__}")
        if not self._installed:
            self._install()
        self._attached[key] = adapter

    def detach(self, key: str) -> None:
        """Forget it, and every stack with it."""
        self._attached.pop(key, None)
        for stack in [stack for stack in self._ready if any(share.key == key for share in stack)]:
            del self._ready[stack]

    def overhead(self, rank: int) -> float:
        """Multiplies of both narrow products against those of the layers, a token."""
        wide = sum(out * inner for out, inner in self._layers.values())
        return rank * sum(out + inner for out, inner in self._layers.values()) / wide

    @contextmanager
    def rows(self, stacks: Sequence[Stack]) -> Iterator[bool]:
        """Say which row of the pass within has which stack; True where any has one. Raises `UnknownAdapter`."""
        of: dict[Stack, list[int]] = {}
        for row, stack in enumerate(stacks):
            if stack:
                of.setdefault(stack, []).append(row)
        self._stacks.groups = tuple((tuple(rows), self._narrow(stack)) for stack, rows in of.items())
        try:
            yield bool(of)
        finally:
            self._stacks.groups = ()

    def _narrow(self, stack: Stack) -> Narrow:
        """The pairs of a stack, one under the other, by layer."""
        if stack not in self._ready:
            made: dict[str, tuple[Tensor, Tensor]] = {}
            parts = [(self._of(share.key), share.scale) for share in stack]
            for layer in dict.fromkeys(layer for low_rank, _ in parts for layer in low_rank.pairs):
                pairs = [(low_rank.pairs[layer], scale) for low_rank, scale in parts if layer in low_rank.pairs]
                a = torch.cat([pair.a_RK.float() for pair, _ in pairs])
                b = torch.cat([pair.b_NR.float() * (pair.scale * scale) for pair, scale in pairs], 1)
                device = next(self._within.parameters()).device
                made[layer] = a.to(device, self._dtype).contiguous(), b.to(device, self._dtype).contiguous()
            self._ready[stack] = made
            if len(self._ready) > STACKS_KEPT:
                self._ready.popitem(last=False)
        self._ready.move_to_end(stack)
        return self._ready[stack]

    def _of(self, key: str) -> LowRank:
        if key not in self._attached:
            raise UnknownAdapter(f"adapter {key[:12]} is not attached")
        return self._attached[key]

    def _install(self) -> None:
        for name, parent in [*self._within.named_modules()]:
            for child, layer in [*parent.named_children()]:
                if isinstance(layer, nn.Linear | Fp8Linear | InvariantLinear):
                    full = f"{self._prefix}{name}.{child}" if name else f"{self._prefix}{child}"
                    setattr(parent, child, AdaptedLinear(layer, full, self._stacks, self._each_row))
        self._installed = True
