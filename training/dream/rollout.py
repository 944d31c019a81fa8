"""The model going on from its own frames, many sessions in lock-step: what the student trains on and probes look at.

Plain tensors instead of a pool of slots: K and V of the whole stretch lie in one array, whose past part is read.
The model is the served one; only where its parameters ask for no gradient does it run torch's own products here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ...models.dream.transformer import PICTURE, CondB, CondBF, DreamTransformer, KVView

STEPS = {1: (1.0,), 2: (1.0, 0.5), 4: (1.0, 0.75, 0.5, 0.25)}


def sigmas_of(steps: int) -> tuple[float, ...]:
    """The levels of a sampler with so many steps."""
    return STEPS.get(steps) or tuple(1 - i / steps for i in range(steps))


Predict = Callable[[Tensor, float], Tensor]  # noisy picture and level to the clean picture


def sampled(noise_BPC: Tensor, sigmas: tuple[float, ...], predict: Predict) -> Tensor:
    """The clean picture after all steps; each further step keeps the noise it was given."""
    x = x0 = noise_BPC
    for i, sigma in enumerate(sigmas):
        x0 = predict(x, sigma)
        if i + 1 < len(sigmas):
            implied = (x - (1 - sigma) * x0) / sigma
            x = (1 - sigmas[i + 1]) * x0 + sigmas[i + 1] * implied
    return x0


@dataclass(slots=True)
class Dream:
    """Sessions B after `frame` frames; `pictures` keeps the newest three, newest last, the last not committed yet."""

    model: DreamTransformer
    sigmas: tuple[float, ...]
    reach: int
    k: Tensor  # [B, L, N, H, S, D]; entry frame % S
    v: Tensor
    pictures: Tensor
    registers_BRC: Tensor
    cond: CondB
    frame: int

    def next(self, cond: CondB, noise_BNC: Tensor) -> Tensor:
        """Dream the next frame [B, P, C] under `cond` from noise of picture and registers."""
        self._commit()
        history = torch.stack([self.pictures[:, 2], self.pictures[:, 1]], 1)
        noise, registers, view = noise_BNC[:, :PICTURE], noise_BNC[:, PICTURE:], self._view()

        def predict(x: Tensor, sigma: float) -> Tensor:
            level = x.new_full((len(x),), sigma)
            return self.model.denoise(torch.cat([x, registers], 1), history, level, cond, view)

        x0 = sampled(noise, self.sigmas, predict)
        self._take(x0, cond, registers)
        return x0

    def observe(self, picture_BPC: Tensor, cond: CondB, registers_BRC: Tensor) -> None:
        """Take a given frame instead of dreaming one."""
        self._commit()
        self._take(picture_BPC, cond, registers_BRC)

    def _take(self, picture_BPC: Tensor, cond: CondB, registers_BRC: Tensor) -> None:
        self.pictures = torch.cat([self.pictures[:, 1:], picture_BPC[:, None]], 1)
        self.cond, self.registers_BRC, self.frame = cond, registers_BRC, self.frame + 1

    def _commit(self) -> None:
        new = self.model.commit(self.pictures.flip(1), self.registers_BRC, self.cond)
        entry = self.frame % self.k.shape[4]
        self.k[..., entry, :], self.v[..., entry, :] = new.k_BLNHD, new.v_BLNHD

    def _view(self) -> KVView:
        """The newest `reach` entries, whose ages count from the frame that is dreamed next."""
        count, ring = min(self.frame + 1, self.reach), self.k.shape[4]
        entries = [(self.frame - i) % ring for i in range(count)]
        ages = torch.arange(1, count + 1).expand(len(self.k), -1)
        return KVView(self.k[..., entries, :], self.v[..., entries, :], ages)


def begin(
    model: DreamTransformer,
    given_BFPC: Tensor,
    registers_BFRC: Tensor,
    cond: CondBF,
    sigmas: tuple[float, ...],
    reach: int | None = None,
) -> Dream:
    """A dream that has seen F given frames, three or more; it looks `reach` frames back (None: as far as it can)."""
    s, kind = model.shape, model.place.dtype
    k = torch.zeros(len(given_BFPC), s.temporal, s.tokens, s.heads, s.window, s.head_width, dtype=kind)

    def at(frame: int) -> CondB:
        return CondB(cond.controls_BFK[:, frame].to(kind), cond.look_BFL[:, frame].to(kind))

    pictures = given_BFPC.to(kind)
    registers = registers_BFRC.to(kind)
    dream = Dream(
        model, sigmas, s.window if reach is None else reach, k, k.clone(), pictures[:, :3], registers[:, 2], at(2), 0
    )
    for frame in range(3, pictures.shape[1]):
        dream.observe(pictures[:, frame], at(frame), registers[:, frame])
    return dream


def go_on(
    model: DreamTransformer,
    given_BFPC: Tensor,
    registers_BFRC: Tensor,
    cond: CondBF,
    sigmas: tuple[float, ...],
    g: torch.Generator,
) -> Tensor:
    """Own frames [B, M, P, C] after F given ones; registers and conditions are those of all F + M frames.

    The same as `Dream`, with the given frames committed at once.
    """
    rows, first, kind = len(given_BFPC), given_BFPC.shape[1], model.place.dtype
    frames, window = registers_BFRC.shape[1], model.shape.window
    registers = registers_BFRC.to(kind)
    controls, look = cond.controls_BFK.to(kind), cond.look_BFL.to(kind)
    history = given_BFPC.to(kind)
    k, v = model.remembered(history[:, :-1], registers[:, : first - 1], CondBF(controls, look, cond.sigma_BF))
    room = k.new_zeros(*k.shape[:4], frames - first, k.shape[5])
    k, v, own = torch.cat([k, room], 4), torch.cat([v, room], 4), []
    held = k.shape[4] - (frames - first)
    pictures = history[:, -3:]
    for frame in range(first, frames):
        at = CondB(controls[:, frame - 1], look[:, frame - 1])
        new = model.commit(pictures.flip(1), registers[:, frame - 1], at)
        k[..., held, :], v[..., held, :] = new.k_BLNHD, new.v_BLNHD
        held += 1
        low = max(0, held - window)
        view = KVView(k[..., low:held, :], v[..., low:held, :], torch.arange(held - low, 0, -1).expand(rows, -1))
        noise = torch.randn(pictures[:, 0].shape, generator=g).to(kind)
        before = torch.stack([pictures[:, 2], pictures[:, 1]], 1)
        now = CondB(controls[:, frame], look[:, frame])

        def predict(x: Tensor, sigma: float, before=before, now=now, view=view, frame=frame) -> Tensor:  # type: ignore[no-untyped-def]
            level = x.new_full((rows,), sigma)
            return model.denoise(torch.cat([x, registers[:, frame]], 1), before, level, now, view)

        x0 = sampled(noise, sigmas, predict)
        own.append(x0)
        pictures = torch.cat([pictures[:, 1:], x0[:, None]], 1)
    return torch.stack(own, 1).float()
