"""Bytes and FLOPs of a small card, counted on the networks themselves: two chunks are made and every product seen.

No size is written down here, so other networks of other sizes are counted as they are. A multiply and an add are two
FLOPs; matrix products, convolutions and attention count, additions and norms do not. oneDNN's two operations, which
served layers name themselves, are unknown to torch's counter and told to it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from ..kernels.row_grouping import ONEDNN
from .contract.footprint import Footprint, FootprintPart, StepCost
from .contract.loaded import LoadedCard
from .parity.session import ChunkInput, ParitySession
from .shared import serial

Shape = Sequence[int]
_READS = {"commit_denoise": "transformer", "denoise": "transformer", "decode": "autoencoder"}
"""By step, the component that it reads most of."""


def _linear_flop(x: Shape, weight_NK: Shape, *_rest: object, **_made: object) -> int:
    """Lines of x [..., K] by weights [N, K]."""
    return 2 * math.prod(x) * weight_NK[0]


def _convolution_flop(_x: Shape, weight_OIHW: Shape, *_rest: object, out_shape: Shape) -> int:
    """Every number of the result [N, O, H, W] is a product with one whole kernel."""
    return 2 * math.prod(out_shape) * math.prod(weight_OIHW[1:])


def _onednn() -> dict[Any, Any]:
    """FLOPs of what kernels/invariant_matmul.py and road/autoencoder.py call where torch has oneDNN, by operation."""
    if not ONEDNN:
        return {}
    return {
        torch.ops.mkldnn._linear_pointwise: _linear_flop,
        torch.ops.aten.mkldnn_convolution: _convolution_flop,
    }


class _Widest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes of the largest input and output of one operation."""

    bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        tensors = [*(a for a in args if isinstance(a, Tensor)), *([made] if isinstance(made, Tensor) else [])]
        self.bytes = max(self.bytes, sum(tensor.nbytes for tensor in tensors))
        return made


def count(loaded: LoadedCard, weights: Path) -> Footprint:
    """Of a card whose components' files lie in the folder `weights`, on this machine."""
    loaded.runtime.allocate(1)
    card, frame = loaded.card, loaded.card.frame
    inputs = [ChunkInput((0.0,) * len(card.controls), (0.0, 0.0), card.suggestions[0])] * 2
    session = ParitySession(loaded, 0, 0, inputs, loaded.runtime.encode_prompt)
    passes: Counter[str] = Counter()
    flop: dict[str, int] = {}
    widest = _Widest()  # type: ignore[no-untyped-call]
    while not session.finished:
        session.begin()
        while (plan := session.plan) is not None:
            view, counter = session.view(), FlopCounterMode(display=False, custom_mapping=_onednn())
            with counter, widest:
                (result,) = loaded.runtime.execute(plan.kind, [plan.row], [view])
            if session.outcomes:
                passes[plan.kind] += 1
                flop[plan.kind] = counter.get_total_flops()
            session.advance(result)
    return Footprint(
        parts=_parts(loaded, weights),
        steps=tuple(StepCost(kind, flop[kind], passes[kind], _READS.get(kind, "")) for kind in flop),
        kv_bytes=card.cache.bytes_per_session if card.cache else 0,
        decoder_bytes=0,
        carry_bytes=len(serial.dumps(session.carry)),
        activation_bytes=widest.bytes,
        chunk_seconds=frame.per_chunk / frame.fps,
    )


def _parts(loaded: LoadedCard, weights: Path) -> tuple[FootprintPart, ...]:
    """All that lies in a file, tables and ranges too; floating numbers in the float32 they are served in, integers as
    they lie in the files."""
    counted = []
    for component in loaded.card.components:
        with safe_open(weights / component.file, framework="pt") as file:
            tensors = [file.get_tensor(key) for key in file.keys()]  # noqa: SIM118 - not a mapping
        elements = sum(tensor.numel() for tensor in tensors)
        resident = sum(t.numel() * (4 if t.is_floating_point() else t.element_size()) for t in tensors)
        counted.append(FootprintPart(component.name, elements, resident / elements))
    return tuple(counted)
