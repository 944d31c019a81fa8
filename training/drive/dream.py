"""The model dreaming: a batch of sessions advancing in lock-step from their own frames.

Used to make contexts for post-training and to measure; it calls the same denoise, commit and fused passes as
the served loop, with a plain ring instead of a pool.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...models.drive.memory import PICTURE_TOKENS
from ...models.drive.transformer import CondB, DriveTransformer
from ...models.shared.road.blocks import CommittedKV, KVView

ONE_STEP = (1.0,)
TWO_STEPS = (1.0, 0.5)


@dataclass(slots=True)
class Dream:
    """Sessions B at frame `frame`; `history_B3NC` holds the newest three frames, newest first."""

    model: DriveTransformer
    sigmas: tuple[float, ...]
    noise: torch.Generator
    k: Tensor
    v: Tensor
    entry_frames: list[int]
    history_B3NC: Tensor
    newest_cond: CondB
    frame: int  # index of the newest frame, which is not committed yet
    known: int | None = None  # pictures of the past that a frame may know; None: all that are kept

    def next(self, cond: CondB) -> Tensor:
        """Dream the next frame [B, N, C] under `cond`."""
        rows = self.history_B3NC.shape[0]
        x = torch.randn(self.history_B3NC[:, 0].shape, generator=self.noise)
        x0 = x
        for i, sigma in enumerate(self.sigmas):
            level = torch.full((rows,), sigma)
            if i == 0:
                new, x0 = self.model.commit_denoise(
                    self._history(), self.newest_cond, x, level, cond, self._view(self.frame)
                )
                self._keep(new)
            else:
                x0 = self.model.denoise(x, self._history()[:, :2], level, cond, self._view(self.frame + 1))
            if i + 1 < len(self.sigmas):
                noise = (x - (1 - sigma) * x0) / sigma
                x = (1 - self.sigmas[i + 1]) * x0 + self.sigmas[i + 1] * noise
        self.history_B3NC = torch.cat([x0[:, None], self.history_B3NC[:, :2]], 1)
        self.newest_cond, self.frame = cond, self.frame + 1
        return x0

    def observe(self, latent_BNC: Tensor, cond: CondB) -> None:
        """Take a given frame instead of dreaming one."""
        self._keep(self.model.commit(self.history_B3NC, self.newest_cond))
        self.history_B3NC = torch.cat([latent_BNC[:, None], self.history_B3NC[:, :2]], 1)
        self.newest_cond, self.frame = cond, self.frame + 1

    def _history(self) -> Tensor:
        """The newest frames as far as their pictures may be known; the newest one's memory always is."""
        history = self.history_B3NC
        if self.known is None or self.known > 2:
            return history
        if self.known < 2:
            history = history[:, :1].repeat(1, 3, 1, 1)
        if self.known == 0:
            history[:, :, :PICTURE_TOKENS] = 0
        return history

    def _view(self, current: int) -> KVView:
        reach = len(self.entry_frames) if self.known is None else max(0, self.known - 1)
        ages = torch.tensor([current - f if f >= 0 and current - f <= reach else 0 for f in self.entry_frames])
        return KVView(self.k, self.v, ages.expand(self.k.shape[0], -1))

    def _keep(self, new: CommittedKV) -> None:
        entry = self.frame % len(self.entry_frames)
        self.k[..., entry, :], self.v[..., entry, :], self.entry_frames[entry] = new.k_BLNHD, new.v_BLNHD, self.frame


def begin(model: DriveTransformer, first_BNC: Tensor, cond: CondB, sigmas: tuple[float, ...], seed: int) -> Dream:
    """A dream whose only frame so far is given."""
    s = model.shape
    k = torch.zeros(len(first_BNC), s.temporal, s.tokens, s.heads, s.entries, s.head_width)
    history = first_BNC[:, None].repeat(1, 3, 1, 1)
    noise = torch.Generator().manual_seed(seed)
    return Dream(model, sigmas, noise, k, torch.zeros_like(k), [-1] * s.entries, history, cond, 0)
