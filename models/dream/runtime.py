"""The dream card's steps on one device: the transformer against the slab, the autoencoder's decoder, the text encoder.

    slab K, V [slots, L temporal blocks, N tokens, H heads, S ring entries, D head width]

A row reads its committed entries oldest first, right-aligned, wherever they lie in the ring: a frame is then seen at
the same place whether it was committed in this pass or before, and neither ring positions nor slots can change a bit of
a result. Rows of a batch run together, whatever their ages, and have the bits they have alone. Knows no loop, no clock.

    fused     [ pad .. pad | oldest .. newest committed | the frame committed in this pass ]      ring + 1 keys
    denoise   [ pad .. pad | oldest ..                                    newest committed ]      ring + 1 keys
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..contract.cache import CacheView
from ..contract.loaded import Copied
from ..contract.loop import StepKind
from ..shared.road.autoencoder import DriveAutoencoder, to_frames
from ..shared.road.look import LOOK
from ..shared.slab_bytes import from_bytes, to_bytes
from ..shared.steps import misplaced, needed, paired
from ..weights import load_module
from . import card as sizes
from .loop import Decoded, DecodeRow, Denoised, DenoiseRow, DreamResult, DreamRow, Made
from .transformer import CommittedKV, CondB, DreamShape, DreamTransformer, KVView

CONTROLS = 4
Entries = tuple[int, ...]
SHAPE = DreamShape(controls=CONTROLS, look=LOOK)
_KEPT = 31 * 2**20
"""Bytes. Once glibc was given back a block of this size (32 MiB is the most it learns from) it keeps up to twice as
many for the next step; else it asks the kernel for new pages in every step, which cost more than what is put there."""
STORED = (torch.float16, torch.float32)  # in the files; all computing is in float32


def load_networks(folder: Path) -> tuple[DreamTransformer, DriveAutoencoder]:
    """Both networks, ready for inference; raises `WeightsError`."""
    transformer, autoencoder = DreamTransformer(SHAPE), DriveAutoencoder()
    load_module(folder / "transformer.safetensors", transformer, STORED)
    load_module(folder / "autoencoder.safetensors", autoencoder, STORED)
    return transformer.eval().requires_grad_(False), autoencoder.eval().requires_grad_(False)


class DreamRuntime:
    """See the module docstring. Nothing here needs gradients, so every step runs in inference mode."""

    def __init__(
        self,
        transformer: DreamTransformer,
        autoencoder: DriveAutoencoder,
        look_of: Callable[[str], NDArray[np.float32]],
    ) -> None:
        self._transformer, self._autoencoder, self._look_of = transformer, autoencoder, look_of
        self._k, self._v = self._slab(0), self._slab(0)

    def allocate(self, slots: int) -> None:
        self._k, self._v = self._slab(slots), self._slab(slots)
        torch.empty(_KEPT, dtype=torch.uint8)  # given back at once

    @torch.inference_mode()
    def execute(self, kind: StepKind, rows: Sequence[DreamRow], views: Sequence[CacheView | None]) -> list[DreamResult]:
        pairs = paired(rows, views)
        match kind:
            case StepKind.DENOISE:
                return self._denoise(_denoised(kind, rows), [needed(view) for _, view in pairs])
            case StepKind.COMMIT_DENOISE:
                return self._commit_denoise(_denoised(kind, rows), [needed(view) for _, view in pairs])
            case StepKind.DECODE:
                return self._decode(rows)
            case _:
                raise ValueError(f"dream has no step '{kind}'")

    def encode_prompt(self, text: str) -> NDArray[np.float32]:
        return self._look_of(text)

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[DreamRow, CacheView | None]]:
        dice = np.random.default_rng(0)
        x_PC = dice.standard_normal((sizes.PICTURE_TOKENS, sizes.CHANNELS)).astype(np.float32)
        noise_Z = dice.standard_normal(sizes.NOISE).astype(np.float32)
        made = Made(np.zeros(CONTROLS, np.float32), np.full(LOOK, 0.25, np.float32), noise_Z)
        row: DreamRow
        match kind:
            case StepKind.DENOISE | StepKind.COMMIT_DENOISE:
                commit = made if kind is StepKind.COMMIT_DENOISE else None
                row = DenoiseRow(x_PC, np.stack([x_PC, x_PC, x_PC]), 1.0, made, commit)
            case StepKind.DECODE:
                row = DecodeRow(x_PC)
            case _:
                raise ValueError(f"dream has no step '{kind}'")
        full = tuple(range(sizes.WINDOW))
        return [(row, CacheView(slot, full, sizes.WINDOW)) for slot in range(count)]

    def read_entry(self, slot: int, entry: int) -> Copied:
        """K, then V, as they lie in the slab."""
        return to_bytes(*self._entry(slot, entry))

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        from_bytes(data, *self._entry(slot, entry))

    def _entry(self, slot: int, entry: int) -> tuple[Tensor, Tensor]:
        return self._k[slot, :, :, :, entry], self._v[slot, :, :, :, entry]

    def _slab(self, slots: int) -> Tensor:
        s = SHAPE
        return torch.zeros((slots, s.temporal, s.tokens, s.heads, s.entries, s.head_width))

    def _denoise(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView]) -> list[DreamResult]:
        held = [view.committed for view in views]
        return [Denoised(x0_PC) for x0_PC in self._predicted(rows, views, held).numpy()]

    def _commit_denoise(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView]) -> list[DreamResult]:
        """Numbers that are not finite are never stored, an entry that is masked out must still be harmless; what was
        dreamed without them is not a number either."""
        made = [row.commit for row in rows if row.commit]
        new: CommittedKV = self._transformer.commit(_stacked([row.history_3PC for row in rows]), _conditions(made))
        sound_B = [bool(both.isfinite().all()) for both in (new.k_BLNHD + new.v_BLNHD).unbind()]
        for row, view in enumerate(views):
            self._k[view.slot, :, :, :, view.staged] = new.k_BLNHD[row] if sound_B[row] else 0.0
            self._v[view.slot, :, :, :, view.staged] = new.v_BLNHD[row] if sound_B[row] else 0.0
        x0_BPC = self._predicted(rows, views, [(*view.committed, view.staged) for view in views])
        if not all(sound_B):
            x0_BPC[~torch.tensor(sound_B)] = torch.nan
        return [Denoised(x0_PC) for x0_PC in x0_BPC.numpy()]

    def _predicted(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView], held: Sequence[Entries]) -> Tensor:
        return self._transformer.denoise(
            _stacked([row.x_PC for row in rows]),
            _stacked([row.history_3PC[:2] for row in rows]),
            torch.tensor([row.sigma for row in rows]),
            _conditions([row.made for row in rows]),
            self._read([view.slot for view in views], held),
        )

    def _decode(self, rows: Sequence[DreamRow]) -> list[DreamResult]:
        tokens = []
        for row in rows:
            if not isinstance(row, DecodeRow):
                raise misplaced(StepKind.DECODE, row)
            tokens.append(row.x_PC)
        picture_B3HW = self._autoencoder.decode(_stacked(tokens))
        return [Decoded(frame_HWC) for frame_HWC in to_frames(picture_B3HW).numpy()]

    def _read(self, slots: Sequence[int], held: Sequence[Entries]) -> KVView:
        """Each row's entries, oldest first, behind as many empty ones as fill ring + 1 keys; the newest has age 1.

        Entry 0 stands for the empty ones. A layer's keys lie together, so that their products are alike in any batch.
        """
        s, keys, ages = SHAPE, SHAPE.entries + 1, []
        k, v = torch.empty(2, s.temporal, len(slots), s.tokens, s.heads, keys, s.head_width)
        for row, (slot, entries) in enumerate(zip(slots, held, strict=True)):
            empty = keys - len(entries)
            order = torch.tensor([*[0] * empty, *entries])
            torch.index_select(self._k[slot], 3, order, out=k[:, row])
            torch.index_select(self._v[slot], 3, order, out=v[:, row])
            ages.append([*[0] * empty, *range(len(entries), 0, -1)])
        return KVView(k.transpose(0, 1), v.transpose(0, 1), torch.tensor(ages))


def _denoised(kind: StepKind, rows: Sequence[DreamRow]) -> list[DenoiseRow]:
    """The rows, all of which commit or none of which does, as `kind` says; raises ValueError."""
    fitting = [row for row in rows if isinstance(row, DenoiseRow)]
    commits = kind is StepKind.COMMIT_DENOISE
    for row in rows:
        if not isinstance(row, DenoiseRow) or (row.commit is not None) is not commits:
            raise misplaced(kind, row)
    return fitting


def _stacked(arrays: Sequence[NDArray[np.float32]]) -> Tensor:
    return torch.from_numpy(np.array(arrays))


def _conditions(made: Sequence[Made]) -> CondB:
    return CondB(
        _stacked([one.controls_K for one in made]),
        _stacked([one.look_L for one in made]),
        _stacked([one.noise_Z for one in made]),
    )
