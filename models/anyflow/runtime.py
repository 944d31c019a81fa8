"""An AnyFlow card's steps on one device. A slab's entry is one whole cache, so a commit never touches the old one.

    slab   full [slots, 2, layers, 2, heads, tokens, head width]     compressed: the same, a quarter of the tokens

In the invariant form rows of equal histories share a pass, and each keeps the bits it has alone; otherwise they run one
after another. A shared pass reads copies of the rows' caches, which lie in slots of their own, or fills one and hands
it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np
import torch
from torch import Tensor

from ...kernels.noise import gaussian
from ...kernels.philox import NoiseKey
from ...kernels.sampler_step import SamplerMove, sampler_step
from ..contract.cache import CacheView
from ..contract.card import FrameSpec
from ..contract.latents import Latents
from ..contract.loaded import Copied
from ..contract.loop import Committed, StepKind
from ..shared.slab_bytes import Make, clear, from_bytes, to_bytes
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

    def __init__(self, networks: Networks, device: torch.device, frame: FrameSpec, invariant: bool = False) -> None:
        self._networks, self._spec, self._device, self._frame = networks, networks.spec, device, frame
        self._shares = invariant
        self._dtype = next(iter(networks.transformer.parameters())).dtype
        self._full, self._compressed = self._slabs(0)

    def allocate(self, slots: int) -> None:
        self._full, self._compressed = self._slabs(slots)

    def reserve(self, slots: int) -> None:
        self._full, self._compressed = self._slabs(slots, torch.empty)

    def clear_entry(self, slot: int, entry: int) -> None:
        clear(self._full[slot, entry], self._compressed[slot, entry])

    @torch.inference_mode()
    def execute(
        self, kind: StepKind, rows: Sequence[AnyFlowRow], views: Sequence[CacheView | None]
    ) -> list[AnyFlowResult]:
        pairs = paired(rows, views)
        results: dict[int, AnyFlowResult] = {}
        for together in self._groups(rows):
            results |= zip(together, self._together(kind, [pairs[at] for at in together]), strict=True)
        return [results[at] for at in range(len(pairs))]

    @torch.inference_mode()
    def encode_prompt(self, text: str) -> Tensor:
        return self._networks.encode(text)

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[AnyFlowRow, CacheView | None]]:
        """At a full history, where a step is dearest."""
        spec = self._spec
        key = NoiseKey(0, 0, 1, 0)
        text = torch.zeros(spec.text_length, spec.text_dim, dtype=self._dtype, device=self._device)
        past = (1, *[spec.chunk] * (spec.history - 1))
        x = self._noise(key, spec.chunk)
        row: AnyFlowRow
        match kind:
            case StepKind.DENOISE:
                row = DenoiseRow(x, key, 1.0, 0.5, text, (*past, spec.chunk))
            case StepKind.COMMIT:
                row = CommitRow(tuple(self._noise(key, frames) for frames in past), text)
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

    def _slabs(self, slots: int, make: Make = torch.zeros) -> tuple[Tensor, Tensor]:
        s = self._spec
        full, compressed = (
            make((slots, 2, s.layers, 2, s.heads, tokens, s.head_width), dtype=self._dtype, device=self._device)
            for tokens in (s.full_slots, s.compressed_slots)
        )
        return full, compressed

    def _groups(self, rows: Sequence[AnyFlowRow]) -> list[list[int]]:
        """Rows that share a pass: those of equal histories."""
        groups: dict[object, list[int]] = {}
        for at, row in enumerate(rows):
            alike = row.partition if self._shares and isinstance(row, DenoiseRow | CommitRow) else at
            groups.setdefault(alike, []).append(at)
        return [*groups.values()]

    def _together(
        self, kind: StepKind, pairs: Sequence[tuple[AnyFlowRow, CacheView | None]]
    ) -> Sequence[AnyFlowResult]:
        """Rows of one pass; those of other steps are one."""
        denoised = [row for row, _ in pairs if isinstance(row, DenoiseRow) and kind is StepKind.DENOISE]
        committed = [row for row, _ in pairs if isinstance(row, CommitRow) and kind is StepKind.COMMIT]
        if len(denoised) == len(pairs):
            return self._denoise(denoised, [needed(view) for _, view in pairs])
        if len(committed) == len(pairs):
            return self._commit(committed, [needed(view) for _, view in pairs])
        return [self._one(kind, row) for row, _ in pairs]

    def _denoise(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView]) -> list[Denoised]:
        """One Euler step of every row, with the mean velocity from its level t to r."""
        places = [(view.slot, view.committed[-1] if view.committed else view.staged) for view in views]
        partition = rows[0].partition
        xs = [self._noise(row.noise, partition[-1]) if row.x_FCHW is None else row.x_FCHW for row in rows]
        x_BFCHW = torch.stack([x.to(self._device) for x in xs])
        flow_BFCHW = self._networks.denoise(
            x_BFCHW.to(self._dtype),
            [(row.t, row.r) for row in rows],
            self._texts(rows),
            layers(*self.caches(places)),
            partition,
        )
        moves = [SamplerMove(row.t, row.r, None) for row in rows]
        return [Denoised(x_FCHW) for x_FCHW in sampler_step(x_BFCHW, flow_BFCHW.float(), moves)]

    def _commit(self, rows: Sequence[CommitRow], views: Sequence[CacheView]) -> list[Committed]:
        places = [(view.slot, view.staged) for view in views]
        caches = self.caches(places)
        kept_BFCHW = torch.stack([torch.cat(row.kept) for row in rows]).to(self._device, self._dtype)
        self._networks.commit(kept_BFCHW, self._texts(rows), layers(*caches), rows[0].partition)
        if len(places) > 1:
            for slab, filled in zip((self._full, self._compressed), caches, strict=True):
                for row, (slot, entry) in enumerate(places):
                    slab[slot, entry] = filled[:, :, row]
        return [Committed() for _ in rows]

    def _texts(self, rows: Sequence[DenoiseRow] | Sequence[CommitRow]) -> Tensor:
        spec = self._spec
        zeros = torch.zeros(spec.text_length, spec.text_dim, device=self._device)
        return torch.stack([zeros if row.text_LM is None else row.text_LM.to(self._device) for row in rows])

    def caches(self, places: Sequence[tuple[int, int]]) -> tuple[Tensor, Tensor]:
        """Full and compressed part of the rows' caches [layers, 2, B, heads, tokens, head width]: of one row the slab's
        own, of several a copy.
        """
        if len(places) == 1:
            return self._full[places[0]][:, :, None], self._compressed[places[0]][:, :, None]
        full, compressed = (
            torch.stack([slab[place] for place in places], 2) for slab in (self._full, self._compressed)
        )
        return full, compressed

    def _one(self, kind: StepKind, row: AnyFlowRow) -> AnyFlowResult:
        match row:
            case DecodeRow() if kind is StepKind.DECODE:
                return self._decoded(row)
            case EncodeRow() if kind is StepKind.ENCODE:
                picture = torch.from_numpy(row.picture_HWC).permute(2, 0, 1).float() / 127.5 - 1
                latent = self._networks.encode_picture(picture.to(self._device, self._dtype))
                return Encoded(latent.float())
            case EncodeRow() | DenoiseRow() | CommitRow() | DecodeRow():
                raise misplaced(kind, row)
            case _:
                assert_never(row)

    @torch.inference_mode()
    def _decoded(self, row: DecodeRow) -> Decoded:
        x = row.x_FCHW.to(self._device, self._dtype)
        pictures, features = self._networks.decode(x, row.features)
        return Decoded(frames_of(pictures, self._frame), features, Latents.of(row.x_FCHW.float().cpu().numpy()))

    def _noise(self, key: NoiseKey, frames: int) -> Tensor:
        spec = self._spec
        return gaussian([key], (frames, spec.channels, spec.rows, spec.columns), self._device)[0]


def layers(full: Tensor, compressed: Tensor) -> Cache:
    """As diffusers takes them, layer by layer."""
    both = zip(full, compressed, strict=True)
    return {layer: {"full_cache": f, "compressed_cache": c} for layer, (f, c) in enumerate(both)}
