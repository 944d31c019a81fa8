"""The model going on from its own frames, many sessions in lock-step: what the student trains on and probes look at.

Plain tensors instead of a pool of slots: K and V of the whole stretch lie in one array, whose past part is read.
The model is the served one; only where its parameters ask for no gradient does it run torch's own products here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ...models.dream.transformer import CondB, CondBF, DreamTransformer, KVView

STEPS = {1: (1.0,), 2: (1.0, 0.5), 4: (1.0, 0.75, 0.5, 0.25)}


def sigmas_of(steps: int) -> tuple[float, ...]:
    """The levels of a sampler with so many steps."""
    return STEPS.get(steps) or tuple(1 - i / steps for i in range(steps))


Predict = Callable[[Tensor, float], Tensor]  # noisy picture and level to the clean picture


def next_level(x: Tensor, x0: Tensor, sigma: float, lower: float) -> Tensor:
    """From a level to a lower one: the noise implied by the prediction is kept."""
    return (1 - lower) * x0 + lower * (x - (1 - sigma) * x0) / sigma


def sampled(noise_BPC: Tensor, sigmas: tuple[float, ...], predict: Predict) -> Tensor:
    """The clean picture after all steps."""
    x = x0 = noise_BPC
    for i, sigma in enumerate(sigmas):
        x0 = predict(x, sigma)
        if i + 1 < len(sigmas):
            x = next_level(x, x0, sigma, sigmas[i + 1])
    return x0


@dataclass(slots=True)
class Dream:
    """Sessions B after `frame` frames; `pictures` keeps the newest three, newest last, the last not committed yet."""

    model: DreamTransformer
    sigmas: tuple[float, ...]
    history: int | None
    k: Tensor  # [B, L, N, H, S, D]; entry frame % S
    v: Tensor
    pictures: Tensor
    cond: CondB
    frame: int

    def next(self, cond: CondB, noise_BPC: Tensor) -> Tensor:
        """Dream the next frame [B, P, C] under `cond` from its picture's noise."""
        self._commit()
        before, view = self._before(), self._view()

        def predict(x: Tensor, sigma: float) -> Tensor:
            return self.model.denoise(x, before, x.new_full((len(x),), sigma), cond, view)

        x0 = sampled(noise_BPC, self.sigmas, predict)
        self._take(x0, cond)
        return x0

    def observe(self, picture_BPC: Tensor, cond: CondB) -> None:
        """Take a given frame instead of dreaming one."""
        self._commit()
        self._take(picture_BPC, cond)

    def _take(self, picture_BPC: Tensor, cond: CondB) -> None:
        self.pictures = torch.cat([self.pictures[:, 1:], picture_BPC[:, None]], 1)
        self.cond, self.frame = cond, self.frame + 1

    def _commit(self) -> None:
        new = self.model.commit(self.pictures.flip(1), self.cond)
        entry = self.frame % self.k.shape[4]
        self.k[..., entry, :], self.v[..., entry, :] = new.k_BLNHD, new.v_BLNHD

    def _before(self) -> Tensor:
        """The previous frame and the one before that, as far as they may be known."""
        last, older = self.pictures[:, 2], self.pictures[:, 1]
        match self.history:
            case 0:
                return torch.zeros_like(self.pictures[:, :2])
            case 1:
                return torch.stack([last, last], 1)
            case _:
                return torch.stack([last, older], 1)

    def _view(self) -> KVView:
        """Entries of the window whose frames may be known (an entry is made of a frame and the two before it)."""
        window, ring = self.model.shape.window, self.k.shape[4]
        reach = window if self.history is None else min(window, max(0, self.history - 2))
        count = min(self.frame + 1, reach)
        entries = [(self.frame - i) % ring for i in range(count)]
        ages = torch.arange(1, count + 1).expand(len(self.k), -1)
        return KVView(self.k[..., entries, :], self.v[..., entries, :], ages)


def begin(
    model: DreamTransformer, given_BFPC: Tensor, cond: CondBF, sigmas: tuple[float, ...], history: int | None = None
) -> Dream:
    """A dream that has seen F given frames, three or more; of those and its own it knows `history` (None: all)."""
    s, kind = model.shape, model.place.dtype
    k = torch.zeros(len(given_BFPC), s.temporal, s.tokens, s.heads, s.window, s.head_width, dtype=kind)
    pictures, cond = given_BFPC.to(kind), cond.to(kind)
    dream = Dream(model, sigmas, history, k, k.clone(), pictures[:, :3], cond.at(2), 0)
    for frame in range(3, pictures.shape[1]):
        dream.observe(pictures[:, frame], cond.at(frame))
    return dream


def go_on(
    model: DreamTransformer, given_BFPC: Tensor, cond: CondBF, sigmas: tuple[float, ...], g: torch.Generator
) -> Tensor:
    """Own frames [B, M, P, C] after F given ones; the conditions are those of all F + M frames.

    The same as `Dream`, with the given frames committed at once.
    """
    rows, first, kind = len(given_BFPC), given_BFPC.shape[1], model.place.dtype
    cond = cond.to(kind)
    frames, window, pictures = cond.sigma_BF.shape[1], model.shape.window, given_BFPC.to(kind)
    k, v = model.remembered(pictures[:, :-1], cond.first(first - 1))
    room = k.new_zeros(*k.shape[:4], frames - first, k.shape[5])
    held, own = k.shape[4], []
    k, v = torch.cat([k, room], 4), torch.cat([v, room], 4)
    pictures = pictures[:, -3:]
    for frame in range(first, frames):
        new = model.commit(pictures.flip(1), cond.at(frame - 1))
        k[..., held, :], v[..., held, :] = new.k_BLNHD, new.v_BLNHD
        held += 1
        low = max(0, held - window)
        view = KVView(k[..., low:held, :], v[..., low:held, :], torch.arange(held - low, 0, -1).expand(rows, -1))
        x0 = noise = torch.randn(pictures[:, 0].shape, generator=g).to(kind)
        before = torch.stack([pictures[:, 2], pictures[:, 1]], 1)
        for i, sigma in enumerate(sigmas):
            x0 = model.denoise(noise, before, noise.new_full((rows,), sigma), cond.at(frame), view)
            if i + 1 < len(sigmas):
                noise = next_level(noise, x0, sigma, sigmas[i + 1])
        own.append(x0)
        pictures = torch.cat([pictures[:, 1:], x0[:, None]], 1)
    return torch.stack(own, 1).float()
