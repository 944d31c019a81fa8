"""The model going on from its own frames, many sessions in lock-step: what the student trains on and probes look at.

Plain tensors instead of a pool of slots: K and V of the whole stretch lie in one array, whose past part is read.
The model is the served one; only where its parameters ask for no gradient does it run torch's own products here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ...models.dream.transformer import CondB, CondBF, DreamTransformer
from ...models.shared.road.blocks import KVView
from ..drive.past import ALL, Known

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


@dataclass(frozen=True, slots=True)
class Pressed:
    """What a frame is made of beside its past: keys, look, noise beside its picture's."""

    controls_BK: Tensor
    look_BL: Tensor
    noise_BZ: Tensor

    def cond(self, state_BR: Tensor) -> CondB:
        return CondB(self.controls_BK, self.look_BL, self.noise_BZ, state_BR)


@dataclass(slots=True)
class Dream:
    """Sessions B after `frame` frames; `past` keeps the newest pictures and what each was made of, newest last.

    The newest is not committed yet.
    """

    model: DreamTransformer
    sigmas: tuple[float, ...]
    known: Known
    k: Tensor  # [B, L, N, H, S, D]; entry frame % S
    v: Tensor
    past: list[tuple[Tensor, Pressed]]
    state: Tensor  # [B, R], of the newest picture
    frame: int

    def next(self, pressed: Pressed, noise_BPC: Tensor) -> Tensor:
        """Dream the next frame [B, P, C] from its picture's noise."""
        self._commit()
        state = self.model.onward(self._tokens(), pressed.controls_BK, pressed.noise_BZ)
        before, view, cond = self._before(), self._view(), pressed.cond(state)

        def predict(x: Tensor, sigma: float) -> Tensor:
            return self.model.denoise(x, before, x.new_full((len(x),), sigma), cond, view)

        x0 = sampled(noise_BPC, self.sigmas, predict)
        self._take(x0, pressed, state)
        return x0

    def observe(self, picture_BPC: Tensor, pressed: Pressed) -> None:
        """Take a given frame instead of dreaming one; its recurrent tokens are read."""
        self._commit()
        self._take(picture_BPC, pressed, self.read([*self.past, (picture_BPC, pressed)]))

    def _take(self, picture_BPC: Tensor, pressed: Pressed, state: Tensor) -> None:
        needed = max(3, self.known.recurrent or 0)
        self.past = [*self.past, (picture_BPC, pressed)][-needed:]
        self.state, self.frame = state, self.frame + 1

    def read(self, past: list[tuple[Tensor, Pressed]]) -> Tensor:
        """The recurrent tokens of the newest of the last three of these."""
        newest_first = torch.stack([picture for picture, _ in reversed(past[-3:])], 1)
        return self.model.read(newest_first, past[-1][1].look_BL)

    def _tokens(self) -> Tensor:
        """The newest picture's recurrent tokens, as far as the past that may be known says."""
        match self.known.recurrent:
            case None:
                return self.state
            case 0:
                return torch.zeros_like(self.state)
            case frames if frames < 3:
                return self.read([self.past[-1]] * 3)
            case _:
                state = self.read(self.past[:3])
                for _, pressed in self.past[3:]:
                    state = self.model.onward(state, pressed.controls_BK, pressed.noise_BZ)
                return state

    def _commit(self) -> None:
        newest_first = torch.stack([picture for picture, _ in reversed(self.past[-3:])], 1)
        new = self.model.commit(newest_first, self.past[-1][1].cond(self.state))
        entry = self.frame % self.k.shape[4]
        self.k[..., entry, :], self.v[..., entry, :] = new.k_BLNHD, new.v_BLNHD

    def _before(self) -> Tensor:
        """The previous frame and the one before that, as far as they may be known."""
        last, older = self.past[-1][0], self.past[-2][0]
        match self.known.kept:
            case 0:
                return torch.zeros_like(torch.stack([last, last], 1))
            case 1:
                return torch.stack([last, last], 1)
            case _:
                return torch.stack([last, older], 1)

    def _view(self) -> KVView:
        """Entries of the window whose frames may be known (an entry is made of a frame and the two before it)."""
        window, ring = self.model.shape.window, self.k.shape[4]
        kept = self.known.kept
        reach = window if kept is None else min(window, max(0, kept - 2))
        count = min(self.frame + 1, reach)
        entries = [(self.frame - i) % ring for i in range(count)]
        ages = torch.arange(1, count + 1).expand(len(self.k), -1)
        return KVView(self.k[..., entries, :], self.v[..., entries, :], ages)


def begin(
    model: DreamTransformer,
    given_BFPC: Tensor,
    pressed: list[Pressed],
    sigmas: tuple[float, ...],
    known: Known = ALL,
) -> Dream:
    """A dream that has seen F given frames, three or more, and knows so much of them and its own."""
    s, kind = model.shape, model.place.dtype
    k = torch.zeros(len(given_BFPC), s.temporal, s.tokens, s.heads, s.window, s.head_width, dtype=kind)
    past = list(zip(given_BFPC.to(kind).unbind(1), pressed, strict=True))
    dream = Dream(model, sigmas, known, k, k.clone(), past[:3], torch.empty(0), 0)
    dream.state = dream.read(past[:3])
    for picture, made_of in past[3:]:
        dream.observe(picture, made_of)
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
    k, v = model.remembered(pictures[:, :-1], cond.part(slice(first - 1), cond.sigma_BF))
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
