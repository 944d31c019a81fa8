"""The drive card's steps on one device: the transformer against the slab, the autoencoder's decoder, the text encoder.

    slab K, V [slots, L temporal blocks, N tokens, H heads, S ring entries, D head width]

A row reads its committed entries oldest first, right-aligned, wherever they lie in the ring: a frame is then seen at
the same place whether it was committed in this pass or before, and neither ring positions nor slots nor neighbours
can change a bit of a result. Rows of a batch run one after another. Knows no loop and no clock.

    fused     [ pad .. pad | oldest .. newest committed ] + the frame committed in this pass      ring + 1 keys
    denoise   [ pad .. pad | oldest ..                newest committed ]                          ring + 1 keys
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import assert_never

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..contract.cache import CacheView
from ..contract.loop import StepKind
from ..shared.slab_bytes import from_bytes, to_bytes
from ..weights import load_module
from . import card as sizes
from .autoencoder import DriveAutoencoder, to_frames
from .blocks import DriveShape
from .innovations import INNOVATIONS
from .look import LOOK
from .loop import Cond, Decoded, DecodeRow, Denoised, DenoiseRow, DriveResult, DriveRow
from .memory import CHANNELS, PICTURE_TOKENS
from .transformer import CommittedKV, CondB, DriveTransformer, KVView

CONTROLS = 4
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

    @torch.inference_mode()
    def execute(self, kind: StepKind, rows: Sequence[DriveRow], views: Sequence[CacheView | None]) -> list[DriveResult]:
        if len(rows) != len(views):
            raise ValueError(f"{len(rows)} rows but {len(views)} cache views")
        return [self._one(kind, row, view) for row, view in zip(rows, views, strict=True)]

    def encode_prompt(self, text: str) -> NDArray[np.float32]:
        return self._look_of(text)

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[DriveRow, CacheView | None]]:
        dice = np.random.default_rng(0)
        x_NC = dice.standard_normal((sizes.TOKENS, CHANNELS)).astype(np.float32)
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

    def read_entry(self, slot: int, entry: int) -> bytes:
        """K, then V, as they lie in the slab."""
        return to_bytes(*self._entry(slot, entry))

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        from_bytes(data, *self._entry(slot, entry))

    def _entry(self, slot: int, entry: int) -> tuple[Tensor, Tensor]:
        return self._k[slot, :, :, :, entry], self._v[slot, :, :, :, entry]

    def _slab(self, slots: int) -> Tensor:
        s = SHAPE
        return torch.zeros((slots, s.temporal, s.tokens, s.heads, s.entries, s.head_width))

    def _one(self, kind: StepKind, row: DriveRow, view: CacheView | None) -> DriveResult:
        match row:
            case DenoiseRow(commit=None) if kind is StepKind.DENOISE:
                x0_BNC = self._transformer.denoise(
                    self._tensor(row.x_NC),
                    self._tensor(row.history_3NC[:2]),
                    torch.tensor([row.sigma]),
                    self._cond(row.cond),
                    self._read(view, SHAPE.entries + 1),
                )
                return Denoised(x0_BNC[0].numpy())
            case DenoiseRow(commit=Cond() as commit) if kind is StepKind.COMMIT_DENOISE:
                return Denoised(self._commit_denoise(row, commit, view))
            case DecodeRow(x_NC) if kind is StepKind.DECODE:
                picture_B3HW = self._autoencoder.decode(self._tensor(x_NC[:PICTURE_TOKENS]))
                return Decoded(to_frames(picture_B3HW)[0].numpy())
            case DenoiseRow() | DecodeRow():
                raise ValueError(f"a {type(row).__name__} cannot run in a '{kind}' step")
            case _:
                assert_never(row)

    def _commit_denoise(self, row: DenoiseRow, commit: Cond, view: CacheView | None) -> NDArray[np.float32]:
        committed, x0_BNC = self._transformer.commit_denoise(
            self._tensor(row.history_3NC),
            self._cond(commit),
            self._tensor(row.x_NC),
            torch.tensor([row.sigma]),
            self._cond(row.cond),
            self._read(view, SHAPE.entries),
        )
        self._stage(committed, _needed(view))
        return x0_BNC[0].numpy()

    def _read(self, view: CacheView | None, keys: int) -> KVView:
        """One row's committed entries behind as many empty ones as fill `keys`; the newest has age 1."""
        view = _needed(view)
        held = len(view.committed)
        order = torch.tensor([*[view.staged] * (keys - held), *view.committed])
        ages_BS = torch.tensor([[*[0] * (keys - held), *range(held, 0, -1)]])
        k, v = self._k[view.slot].index_select(3, order), self._v[view.slot].index_select(3, order)
        return KVView(k[None], v[None], ages_BS)

    def _stage(self, committed: CommittedKV, view: CacheView) -> None:
        """Numbers that are not finite are never stored: an entry that is masked out must still be harmless."""
        k, v = committed.k_BLNHD[0], committed.v_BLNHD[0]
        if not bool(torch.isfinite(k).all() and torch.isfinite(v).all()):
            k, v = torch.zeros_like(k), torch.zeros_like(v)
        self._k[view.slot, :, :, :, view.staged] = k
        self._v[view.slot, :, :, :, view.staged] = v

    def _tensor(self, array: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array))[None]

    def _cond(self, cond: Cond) -> CondB:
        controls_BK, look_BL, innovations_BI = map(self._tensor, (cond.controls_K, cond.look_L, cond.innovations_I))
        return CondB(controls_BK, look_BL, innovations_BI)


def _needed(view: CacheView | None) -> CacheView:
    if view is None:
        raise ValueError("this step reads the cache and was given no view")
    return view
