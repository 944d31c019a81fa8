"""The drive card's steps on one device: the transformer against the slab, the autoencoder's decoder, the text encoder.

    slab K, V [slots, L temporal blocks, N tokens, H heads, S ring entries, D head width]

A row reads its committed entries oldest first, right-aligned, wherever they lie in the ring: a frame is then seen at
the same place whether it was committed in this pass or before, and neither ring positions nor slots can change a bit of
a result. Rows of a batch run together, whatever their ages, and have the bits they have alone (how: blocks.py and
autoencoder.py). Knows no loop and no clock.

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

from ..contract.cache import CacheView, place
from ..contract.loaded import Copied
from ..contract.loop import StepKind
from ..shared.road.autoencoder import DriveAutoencoder, to_frames
from ..shared.road.look import LOOK
from ..shared.slab_bytes import from_bytes, to_bytes
from ..shared.steps import needed, paired
from ..weights import load_module
from . import card as sizes
from .blocks import DriveShape
from .innovations import INNOVATIONS
from .loop import Cond, Decoded, DecodeRow, Denoised, DenoiseRow, DriveResult, DriveRow
from .memory import CHANNELS, PICTURE_TOKENS
from .transformer import CondB, DriveTransformer, KVView

CONTROLS = 4
Entries = tuple[int, ...]
SHAPE = DriveShape(
    width=sizes.WIDTH,
    heads=sizes.HEADS,
    layout=sizes.LAYOUT,
    window=sizes.WINDOW,
    tokens=sizes.TOKENS,
    channels=CHANNELS,
    controls=CONTROLS,
    look=LOOK,
    innovations=INNOVATIONS,
)
_KEPT = 31 * 2**20
"""Bytes. Once glibc was given back a block of this size (32 MiB is the most it learns from) it keeps up to twice as
many for the next step; else it asks the kernel for new pages in every step, which cost more than what is put there."""
STORED = (torch.float16, torch.float32)  # in the files; all computing is in float32


def load_networks(folder: Path) -> tuple[DriveTransformer, DriveAutoencoder]:
    """Both networks, ready for inference; raises `WeightsError`."""
    transformer, autoencoder = DriveTransformer(SHAPE), DriveAutoencoder()
    load_module(folder / "transformer.safetensors", transformer, STORED)
    load_module(folder / "autoencoder.safetensors", autoencoder, STORED)
    transformer, autoencoder = transformer.eval().requires_grad_(False), autoencoder.eval().requires_grad_(False)
    for parameter in autoencoder.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return transformer, autoencoder


class DriveRuntime:
    """See the module docstring. Nothing here needs gradients, so every step runs in inference mode."""

    def __init__(
        self,
        transformer: DriveTransformer,
        autoencoder: DriveAutoencoder,
        look_of: Callable[[str], NDArray[np.float32]],
    ) -> None:
        self._transformer, self._autoencoder, self._look_of = transformer, autoencoder, look_of
        self._k, self._v = self._slab(0), self._slab(0)

    def allocate(self, slots: int) -> None:
        self._k, self._v = self._slab(slots), self._slab(slots)
        torch.empty(_KEPT, dtype=torch.uint8)  # given back at once

    @torch.inference_mode()
    def execute(self, kind: StepKind, rows: Sequence[DriveRow], views: Sequence[CacheView | None]) -> list[DriveResult]:
        pairs = paired(rows, views)
        match kind:
            case StepKind.DENOISE:
                return self._denoise(_denoised(kind, rows), [needed(view) for _, view in pairs])
            case StepKind.COMMIT_DENOISE:
                return self._commit_denoise(_denoised(kind, rows), [needed(view) for _, view in pairs])
            case StepKind.DECODE:
                return self._decode(rows)
            case _:
                raise ValueError(f"drive has no step '{kind}'")

    def encode_prompt(self, text: str) -> NDArray[np.float32]:
        return self._look_of(text)

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[DriveRow, CacheView | None]]:
        rng = np.random.default_rng(0)
        x_NC = rng.standard_normal((sizes.TOKENS, CHANNELS)).astype(np.float32)
        cond = Cond(np.zeros(CONTROLS, np.float32), np.full(LOOK, 0.25, np.float32), np.zeros(INNOVATIONS, np.float32))
        row: DriveRow
        match kind:
            case StepKind.DENOISE | StepKind.COMMIT_DENOISE:
                commit = cond if kind is StepKind.COMMIT_DENOISE else None
                row = DenoiseRow(x_NC, np.stack([x_NC, x_NC, x_NC]), 1.0, cond, commit)
            case StepKind.DECODE:
                row = DecodeRow(x_NC)
            case _:
                raise ValueError(f"drive has no step '{kind}'")
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

    def _denoise(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView]) -> list[DriveResult]:
        held = [view.committed for view in views]
        return [Denoised(x0_NC) for x0_NC in self._predicted(rows, views, held).numpy()]

    def _commit_denoise(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView]) -> list[DriveResult]:
        """Numbers that are not finite are never stored, an entry that is masked out must still be harmless; what was
        painted without them is not a number either."""
        history_B3NC = _stacked([row.history_3NC for row in rows])
        new = self._transformer.commit(history_B3NC, _conditions([row.commit for row in rows if row.commit]))
        sound_B = [bool(both.isfinite().all()) for both in (new.k_BLNHD + new.v_BLNHD).unbind()]
        for row, view in enumerate(views):
            k_LNHD, v_LNHD = self._entry(*place(view.slot, view.staged, SHAPE.entries))
            k_LNHD[:] = new.k_BLNHD[row] if sound_B[row] else 0.0
            v_LNHD[:] = new.v_BLNHD[row] if sound_B[row] else 0.0
        x0_BNC = self._predicted(rows, views, [(*view.committed, view.staged) for view in views])
        if not all(sound_B):
            x0_BNC[~torch.tensor(sound_B)] = torch.nan
        return [Denoised(x0_NC) for x0_NC in x0_BNC.numpy()]

    def _predicted(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView], held: Sequence[Entries]) -> Tensor:
        return self._transformer.denoise(
            _stacked([row.x_NC for row in rows]),
            _stacked([row.history_3NC[:2] for row in rows]),
            torch.tensor([row.sigma for row in rows]),
            _conditions([row.cond for row in rows]),
            self._read([view.slot for view in views], held),
        )

    def _decode(self, rows: Sequence[DriveRow]) -> list[DriveResult]:
        tokens = []
        for row in rows:
            if not isinstance(row, DecodeRow):
                raise ValueError(f"a {type(row).__name__} cannot run in a '{StepKind.DECODE}' step")
            tokens.append(row.x_NC[:PICTURE_TOKENS])
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
            places = [place(slot, entry, s.entries) for entry in entries]
            if all(other == slot for other, _ in places):
                order = torch.tensor([*[0] * empty, *entries])
                torch.index_select(self._k[slot], 3, order, out=k[:, row])
                torch.index_select(self._v[slot], 3, order, out=v[:, row])
            else:  # some lie in the slots of worlds that it was forked with
                for key, (other, entry) in enumerate([*[(slot, 0)] * empty, *places]):
                    k[:, row, ..., key, :], v[:, row, ..., key, :] = self._entry(other, entry)
            ages.append([*[0] * empty, *range(len(entries), 0, -1)])
        return KVView(k.transpose(0, 1), v.transpose(0, 1), torch.tensor(ages))


def _denoised(kind: StepKind, rows: Sequence[DriveRow]) -> list[DenoiseRow]:
    """The rows, all of which commit or none of which does, as `kind` says; raises ValueError."""
    fitting = [row for row in rows if isinstance(row, DenoiseRow)]
    commits = kind is StepKind.COMMIT_DENOISE
    for row in rows:
        if not isinstance(row, DenoiseRow) or (row.commit is not None) is not commits:
            raise ValueError(f"a {type(row).__name__} cannot run in a '{kind}' step")
    return fitting


def _stacked(arrays: Sequence[NDArray[np.float32]]) -> Tensor:
    return torch.from_numpy(np.array(arrays))


def _conditions(conds: Sequence[Cond]) -> CondB:
    return CondB(
        _stacked([cond.controls_K for cond in conds]),
        _stacked([cond.look_L for cond in conds]),
        _stacked([cond.innovations_I for cond in conds]),
    )
