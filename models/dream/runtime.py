"""The dream card's steps on one device: the transformer against the frames that are kept (shared/road/kept.py)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..contract.cache import CacheView
from ..contract.loop import StepKind
from ..shared.road.autoencoder import DriveAutoencoder
from ..shared.road.blocks import CommittedKV, KVView
from ..shared.road.chunk import DecodeRow
from ..shared.road.kept import KeptFrames, LookOf, decoded, load_both, stacked
from ..shared.road.look import LOOK
from ..shared.steps import misplaced, needed, paired
from . import card as sizes
from .loop import Denoised, DenoiseRow, DreamResult, DreamRow, Made
from .shape import DreamShape
from .transformer import CondB, DreamTransformer

CONTROLS = 4
SHAPE = DreamShape(controls=CONTROLS, look=LOOK)


def load_networks(folder: Path) -> tuple[DreamTransformer, DriveAutoencoder]:
    """Both networks, ready for inference; raises `WeightsError`."""
    return load_both(folder, DreamTransformer(SHAPE))


class DreamRuntime(KeptFrames):
    """Nothing here needs gradients, so every step runs in inference mode."""

    def __init__(self, transformer: DreamTransformer, autoencoder: DriveAutoencoder, look_of: LookOf) -> None:
        super().__init__(SHAPE, autoencoder, look_of)
        self._transformer = transformer

    @torch.inference_mode()
    def execute(self, kind: StepKind, rows: Sequence[DreamRow], views: Sequence[CacheView | None]) -> list[DreamResult]:
        pairs = paired(rows, views)
        match kind:
            case StepKind.DENOISE:
                return list(self._denoise(_denoised(kind, rows), [needed(view) for _, view in pairs]))
            case StepKind.COMMIT_DENOISE:
                return list(self._commit_denoise(_denoised(kind, rows), [needed(view) for _, view in pairs]))
            case StepKind.DECODE:
                return list(self._decode(decoded(kind, rows)))
            case _:
                raise ValueError(f"dream has no step '{kind}'")

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[DreamRow, CacheView | None]]:
        dice = np.random.default_rng(0)
        x_PC = dice.standard_normal((sizes.PICTURE_TOKENS, sizes.CHANNELS)).astype(np.float32)
        noise_Z = dice.standard_normal(sizes.NOISE).astype(np.float32)
        made = Made(np.zeros(CONTROLS, np.float32), np.full(LOOK, 0.25, np.float32), noise_Z)
        row: DreamRow
        match kind:
            case StepKind.DENOISE | StepKind.COMMIT_DENOISE:
                commit = made if kind is StepKind.COMMIT_DENOISE else None
                past_R = np.zeros(sizes.STATE, np.float32)
                row = DenoiseRow(x_PC, np.stack([x_PC, x_PC, x_PC]), past_R, 1.0, made, commit)
            case StepKind.DECODE:
                row = DecodeRow(x_PC)
            case _:
                raise ValueError(f"dream has no step '{kind}'")
        full = tuple(range(sizes.WINDOW))
        return [(row, CacheView(slot, full, sizes.WINDOW)) for slot in range(count)]

    def _denoise(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView]) -> list[Denoised]:
        return self._predicted(rows, self._known(rows), views)

    def _commit_denoise(self, rows: Sequence[DenoiseRow], views: Sequence[CacheView]) -> list[Denoised]:
        """What was dreamed without a frame that is not finite is not a number either."""
        committed, past_BR = [row.commit for row in rows if row.commit], self._known(rows)
        history_B3PC = stacked([row.history_3PC for row in rows])
        new: CommittedKV = self._transformer.commit(history_B3PC, _conditions(committed, past_BR))
        bad_B = self._stage(views, new.k_BLNHD, new.v_BLNHD)
        return self._predicted(rows, past_BR, views, bad_B)

    def _known(self, rows: Sequence[DenoiseRow]) -> Tensor:
        """Recurrent tokens of each row's newest picture, read off its pictures where they are not known."""
        known = []
        for row in rows:
            if row.past_R is None:
                history_3PC, look_L = torch.from_numpy(row.history_3PC), torch.from_numpy(row.made.look_L)
                known.append(self._transformer.read(history_3PC[None], look_L[None])[0])
            else:
                known.append(torch.from_numpy(row.past_R))
        return torch.stack(known)

    def _predicted(
        self, rows: Sequence[DenoiseRow], past_BR: Tensor, views: Sequence[CacheView], bad_B: Tensor | None = None
    ) -> list[Denoised]:
        """`bad_B`: rows whose staged frame, which they see, is none; None = they see none."""
        controls_BK = stacked([row.made.controls_K for row in rows])
        noise_BZ = stacked([row.made.noise_Z for row in rows])
        state_BR = self._transformer.onward(past_BR, controls_BK, noise_BZ)
        x0_BPC = self._transformer.denoise(
            stacked([row.x_PC for row in rows]),
            stacked([row.history_3PC[:2] for row in rows]),
            torch.tensor([row.sigma for row in rows]),
            _conditions([row.made for row in rows], state_BR),
            KVView(*self._read(views, staged=bad_B is not None)),
        )
        if bad_B is not None:
            x0_BPC = x0_BPC.masked_fill(bad_B[:, None, None], torch.nan)
        return [Denoised(*both) for both in zip(x0_BPC.numpy(), state_BR.numpy(), strict=True)]


def _denoised(kind: StepKind, rows: Sequence[DreamRow]) -> list[DenoiseRow]:
    """The rows, all of which commit or none of which does, as `kind` says; raises ValueError."""
    fitting = [row for row in rows if isinstance(row, DenoiseRow)]
    commits = kind is StepKind.COMMIT_DENOISE
    for row in rows:
        if not isinstance(row, DenoiseRow) or (row.commit is not None) is not commits:
            raise misplaced(kind, row)
    return fitting


def _conditions(made: Sequence[Made], state_BR: Tensor) -> CondB:
    return CondB(
        stacked([one.controls_K for one in made]),
        stacked([one.look_L for one in made]),
        stacked([one.noise_Z for one in made]),
        state_BR,
    )
