"""An AnyFlow card's steps on one device. A slab's entry is one whole cache, so a commit never touches the old one.

    slab   full [slots, 2, layers, 2, heads, tokens, head width]     compressed: the same, a quarter of the tokens

Rows run one after another: diffusers' cache carries one history length for all rows of a batch, and ours differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..contract.cache import CacheView
from ..contract.card import FrameSpec
from ..contract.loaded import Copied
from ..contract.loop import Committed, StepKind
from ..shared.slab_bytes import from_bytes, to_bytes
from ..shared.steps import misplaced, needed, paired
from ..shared.video.pictures import frames_of
from .loop import (
    AnyFlowResult,
    AnyFlowRow,
    CommitRow,
    Decoded,
    DecodeRow,
    Denoised,
    DenoiseRow,
    Encoded,
    EncodeRow,
)
from .networks import Cache, Networks


class AnyFlowRuntime:
    """See the module docstring. `frame`: what its decode hands on."""

    def __init__(self, networks: Networks, device: torch.device, frame: FrameSpec) -> None:
        self._networks, self._spec, self._device, self._frame = networks, networks.spec, device, frame
        self._dtype = next(iter(networks.transformer.parameters())).dtype
        self._full, self._compressed = self._slabs(0)

    def allocate(self, slots: int) -> None:
        self._full, self._compressed = self._slabs(slots)

    @torch.inference_mode()
    def execute(
        self, kind: StepKind, rows: Sequence[AnyFlowRow], views: Sequence[CacheView | None]
    ) -> list[AnyFlowResult]:
        return [self._one(kind, row, view) for row, view in paired(rows, views)]

    @torch.inference_mode()
    def encode_prompt(self, text: str) -> Tensor:
        return self._networks.encode(text)

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[AnyFlowRow, CacheView | None]]:
        """At a full history, where a step is dearest."""
        spec = self._spec
        frame = (spec.channels, spec.rows, spec.columns)
        rng = np.random.default_rng(0)
        text = torch.zeros(spec.text_length, spec.text_dim, dtype=self._dtype, device=self._device)
        past = (1, *[spec.chunk] * (spec.history - 1))
        x = rng.standard_normal((spec.chunk, *frame)).astype(np.float32)
        row: AnyFlowRow
        match kind:
            case StepKind.DENOISE:
                row = DenoiseRow(x, 1.0, 0.5, text, (*past, spec.chunk))
            case StepKind.COMMIT:
                row = CommitRow(rng.standard_normal((sum(past), *frame)).astype(np.float32), text, past)
            case StepKind.ENCODE:
                row = EncodeRow(np.zeros((8 * spec.rows, 8 * spec.columns, 3), np.uint8))
            case StepKind.DECODE:
                first = self._decoded(DecodeRow(x[:1], None))
                row = DecodeRow(x, first.features)
            case _:
                raise ValueError(f"AnyFlow has no step '{kind}'")
        return [(row, CacheView(slot, (0,), 1)) for slot in range(count)]

    def read_entry(self, slot: int, entry: int) -> Copied:
        """One whole cache: its full part, then its compressed one."""
        return to_bytes(self._full[slot, entry], self._compressed[slot, entry])

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        from_bytes(data, self._full[slot, entry], self._compressed[slot, entry])

    def _slabs(self, slots: int) -> tuple[Tensor, Tensor]:
        s = self._spec
        return (
            torch.zeros(
                slots, 2, s.layers, 2, s.heads, s.full_slots, s.head_width, dtype=self._dtype, device=self._device
            ),
            torch.zeros(
                slots, 2, s.layers, 2, s.heads, s.compressed_slots, s.head_width, dtype=self._dtype, device=self._device
            ),
        )

    def _one(self, kind: StepKind, row: AnyFlowRow, view: CacheView | None) -> AnyFlowResult:
        match row:
            case DenoiseRow() if kind is StepKind.DENOISE:
                view = needed(view)
                entry = view.committed[-1] if view.committed else view.staged
                x = self._tensor(row.x_FCHW)
                flow = self._networks.denoise(
                    x, row.t, row.r, row.text_LM, self._cache(view.slot, entry), row.partition
                )
                return Denoised(flow.float().cpu().numpy())
            case CommitRow() if kind is StepKind.COMMIT:
                view = needed(view)
                cache = self._cache(view.slot, view.staged)
                self._networks.commit(self._tensor(row.kept_FCHW), row.text_LM, cache, row.partition)
                return Committed()
            case DecodeRow() if kind is StepKind.DECODE:
                return self._decoded(row)
            case EncodeRow() if kind is StepKind.ENCODE:
                picture = torch.from_numpy(row.picture_HWC).permute(2, 0, 1).float() / 127.5 - 1
                latent = self._networks.encode_picture(picture.to(self._device, self._dtype))
                return Encoded(latent.float().cpu().numpy())
            case EncodeRow() | DenoiseRow() | CommitRow() | DecodeRow():
                raise misplaced(kind, row)
            case _:
                assert_never(row)

    @torch.inference_mode()
    def _decoded(self, row: DecodeRow) -> Decoded:
        pictures, features = self._networks.decode(self._tensor(row.x_FCHW), row.features)
        return Decoded(frames_of(pictures, self._frame), features)

    def _cache(self, slot: int, entry: int) -> Cache:
        return {
            layer: {
                "full_cache": self._full[slot, entry, layer][:, None],
                "compressed_cache": self._compressed[slot, entry, layer][:, None],
            }
            for layer in range(self._spec.layers)
        }

    def _tensor(self, array: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device, self._dtype)
