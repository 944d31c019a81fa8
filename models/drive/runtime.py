"""The drive card's steps on one device: the transformer against the frames that are kept (shared/road/kept.py)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..contract.cache import CacheView
from ..contract.loop import StepKind
from ..shared.road.autoencoder import DriveAutoencoder
from ..shared.road.blocks import KVView
from ..shared.road.chunk import DecodeRow
from ..shared.road.kept import KeptFrames, LookOf, decoded, load_both, stacked
from ..shared.road.look import LOOK
from ..shared.steps import misplaced, needed, paired
from . import card as sizes
from .blocks import DriveShape
from .innovations import INNOVATIONS
from .loop import Cond, Denoised, DenoiseRow, DriveResult, DriveRow
from .memory import CHANNELS, PICTURE_TOKENS
from .transformer import CondB, DriveTransformer

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


def load_networks(folder: Path) -> tuple[DriveTransformer, DriveAutoencoder]:
    """Both networks, ready for inference; raises `WeightsError`."""
    return load_both(folder, DriveTransformer(SHAPE))


class DriveRuntime(KeptFrames):
    """Nothing here needs gradients, so every step runs in inference mode."""

    def __init__(self, transformer: DriveTransformer, autoencoder: DriveAutoencoder, look_of: LookOf) -> None:
        super().__init__(SHAPE, autoencoder, look_of)
        self._transformer = transformer

    @torch.inference_mode()
    def execute(self, kind: StepKind, rows: Sequence[DriveRow], views: Sequence[CacheView | None]) -> list[DriveResult]:
        pairs = paired(rows, views)
        match kind:
            case StepKind.DENOISE:
                return self._denoise(_denoised(kind, rows), [needed(view) for _, view in pairs])
            case StepKind.COMMIT_DENOISE:
                return self._commit_denoise(_denoised(kind, rows), [needed(view) for _, view in pairs])
            case StepKind.DECODE:
                return list(self._decode(decoded(kind, rows)))
            case _:
                raise ValueError(f"drive has no step '{kind}'")

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
                row = DecodeRow(x_NC[:PICTURE_TOKENS])
            case _:
                raise ValueError(f"drive has no step '{kind}'")
        full = tuple(range(sizes.WINDOW))
        return [(row, CacheView(slot, full, sizes.WINDOW)) for slot in range(count)]

    def _denoise(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView]) -> list[DriveResult]:
        return [Denoised(x0_NC) for x0_NC in self._predicted(rows, views, staged=False).numpy()]

    def _commit_denoise(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView]) -> list[DriveResult]:
        """What was painted without a frame that is not finite is not a number either."""
        history_B3NC = stacked([row.history_3NC for row in rows])
        new = self._transformer.commit(history_B3NC, _conditions([row.commit for row in rows if row.commit]))
        bad_B = self._stage(views, new.k_BLNHD, new.v_BLNHD)
        x0_BNC = self._predicted(rows, views, staged=True).masked_fill(bad_B[:, None, None], torch.nan)
        return [Denoised(x0_NC) for x0_NC in x0_BNC.numpy()]

    def _predicted(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView], staged: bool) -> Tensor:
        return self._transformer.denoise(
            stacked([row.x_NC for row in rows]),
            stacked([row.history_3NC[:2] for row in rows]),
            torch.tensor([row.sigma for row in rows]),
            _conditions([row.cond for row in rows]),
            KVView(*self._read(views, staged)),
        )


def _denoised(kind: StepKind, rows: Sequence[DriveRow]) -> list[DenoiseRow]:
    """The rows, all of which commit or none of which does, as `kind` says; raises ValueError."""
    fitting = [row for row in rows if isinstance(row, DenoiseRow)]
    commits = kind is StepKind.COMMIT_DENOISE
    for row in rows:
        if not isinstance(row, DenoiseRow) or (row.commit is not None) is not commits:
            raise misplaced(kind, row)
    return fitting


def _conditions(conds: Sequence[Cond]) -> CondB:
    return CondB(
        stacked([cond.controls_K for cond in conds]),
        stacked([cond.look_L for cond in conds]),
        stacked([cond.innovations_I for cond in conds]),
    )
