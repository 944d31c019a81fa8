"""The streamed transformer of the driving world computes what it was trained to compute, whatever the batch."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor
from worldroom.models.drive.blocks import DriveShape
from worldroom.models.drive.memory import PICTURE_TOKENS
from worldroom.models.drive.transformer import CONTEXT_SIGMA, CondB, CondBF, DriveTransformer
from worldroom.models.shared.road.blocks import CommittedKV, KVView

torch.set_num_threads(1)
SHAPE = DriveShape(width=32, heads=2, window=4)
FRAMES = 9


def lively_model() -> DriveTransformer:
    """Random weights everywhere, also where training starts at zero."""
    torch.manual_seed(0)
    model = DriveTransformer(SHAPE).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.copy_(torch.randn_like(parameter) * 0.15)
    return model


def world(rows: int) -> tuple[Tensor, CondBF]:
    g = torch.Generator().manual_seed(1)
    latents_BFNC = torch.randn(rows, FRAMES, SHAPE.tokens, SHAPE.channels, generator=g)
    rand = lambda n: torch.rand(rows, FRAMES, n, generator=g)  # noqa: E731
    sigma = torch.rand(rows, FRAMES, generator=g)
    return latents_BFNC, CondBF(rand(SHAPE.controls), rand(SHAPE.look), rand(SHAPE.innovations), sigma)


def remembered(model: DriveTransformer, latents_BFNC: Tensor, cond: CondBF) -> Tensor:
    """The same pictures, with memory that recall moves on from frame to frame, as in a dream."""
    frames = [latents_BFNC[:, 0]]
    for f in range(1, FRAMES):
        memory = model.recall(frames[-1][:, PICTURE_TOKENS:], cond.controls_BFK[:, f], cond.innovations_BFI[:, f])
        frames.append(torch.cat([latents_BFNC[:, f, :PICTURE_TOKENS], memory], 1))
    return torch.stack(frames, 1)


def at(cond: CondBF, frame: int) -> CondB:
    return CondB(cond.controls_BFK[:, frame], cond.look_BFL[:, frame], cond.innovations_BFI[:, frame])


class Ring:
    """A plain ring of committed frames, as a pool would keep it."""

    def __init__(self, rows: int) -> None:
        s = SHAPE
        self.k = torch.zeros(rows, s.temporal, s.tokens, s.heads, s.entries, s.head_width)
        self.v = torch.zeros_like(self.k)
        self.frame_S = [-1] * s.entries
        self.rows = rows

    def view(self, current: int) -> KVView:
        ages = torch.tensor([current - f if f >= 0 else 0 for f in self.frame_S]).expand(self.rows, -1)
        return KVView(self.k, self.v, ages)

    def keep(self, frame: int, new: CommittedKV) -> None:
        entry = frame % SHAPE.entries
        self.k[..., entry, :], self.v[..., entry, :], self.frame_S[entry] = new.k_BLNHD, new.v_BLNHD, frame


def noisy(latents: Tensor, sigma_BF: Tensor) -> Tensor:
    noise = torch.randn(latents.shape, generator=torch.Generator().manual_seed(2))
    s = sigma_BF[..., None, None] * (torch.arange(latents.shape[2]) < PICTURE_TOKENS)[:, None]
    return (1 - s) * latents + s * noise


def streamed(model: DriveTransformer, latents: Tensor, cond: CondBF, fused: bool) -> Tensor:
    """Frames 2.. predicted one by one, each from committed clean frames."""
    x, ring, out = noisy(latents, cond.sigma_BF), Ring(len(latents)), []
    newest_first = latents.flip(1)
    for f in range(2, FRAMES):
        back = FRAMES - f  # index of frame f - 1 in newest_first
        past = newest_first[:, back : back + 3]
        if f == 2:
            x0 = model.denoise(x[:, f], past[:, :2], cond.sigma_BF[:, f], at(cond, f), ring.view(f))
        elif fused:
            new, x0 = model.commit_denoise(
                past, at(cond, f - 1), x[:, f], cond.sigma_BF[:, f], at(cond, f), ring.view(f - 1)
            )
            ring.keep(f - 1, new)
        else:
            ring.keep(f - 1, model.commit(past, at(cond, f - 1)))
            x0 = model.denoise(x[:, f], past[:, :2], cond.sigma_BF[:, f], at(cond, f), ring.view(f))
        out.append(x0)
    return torch.stack(out, 1)


@pytest.mark.parametrize("fused", [False, True])
def test_streaming_through_the_ring_equals_the_training_forward(fused: bool) -> None:
    model = lively_model()
    latents, cond = world(rows=2)
    latents = remembered(model, latents, cond)
    context_sigma = torch.full((2, FRAMES), CONTEXT_SIGMA)
    trained = model.two_stream(latents, noisy(latents, cond.sigma_BF)[:, 2:], context_sigma, cond).clamp(-5, 5)
    assert (streamed(model, latents, cond, fused) - trained).abs().max() < 1e-4


def test_the_fused_pass_commits_what_the_plain_pass_commits() -> None:
    model = lively_model()
    latents, cond = world(rows=1)
    ring = Ring(1)
    past = latents[:, [2, 1, 0]]
    plain = model.commit(past, at(cond, 2))
    fused, _ = model.commit_denoise(past, at(cond, 2), latents[:, 3], cond.sigma_BF[:, 3], at(cond, 3), ring.view(2))
    torch.testing.assert_close(fused.k_BLNHD, plain.k_BLNHD)
    torch.testing.assert_close(fused.v_BLNHD, plain.v_BLNHD)


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    model = lively_model()
    latents, cond = world(rows=3)
    together = streamed(model, latents, cond, fused=True)
    for row in range(3):
        alone = streamed_row(model, latents, cond, row)
        torch.testing.assert_close(together[row : row + 1], alone, atol=1e-4, rtol=1e-3)


def fields_of(cond: CondBF) -> tuple[Tensor, ...]:
    return (cond.controls_BFK, cond.look_BFL, cond.innovations_BFI, cond.sigma_BF)


def streamed_row(model: DriveTransformer, latents: Tensor, cond: CondBF, row: int) -> Tensor:
    """One row alone, with the noise it had in the batch."""
    alone = CondBF(*(field[row : row + 1] for field in fields_of(cond)))
    s = cond.sigma_BF[..., None, None]
    noise = (noisy(latents, cond.sigma_BF) - (1 - s) * latents)[row : row + 1]
    ring, out = Ring(1), []
    mine = latents[row : row + 1]
    x = (1 - s[row : row + 1]) * mine + noise
    for f in range(2, FRAMES):
        past = mine[:, [max(f - 1, 0), max(f - 2, 0), max(f - 3, 0)]]
        if f == 2:
            out.append(model.denoise(x[:, f], past[:, :2], alone.sigma_BF[:, f], at(alone, f), ring.view(f)))
            continue
        new, x0 = model.commit_denoise(
            past, at(alone, f - 1), x[:, f], alone.sigma_BF[:, f], at(alone, f), ring.view(f - 1)
        )
        ring.keep(f - 1, new)
        out.append(x0)
    return torch.stack(out, 1)


def test_rows_of_different_ages_share_a_batch() -> None:
    """An empty ring entry of one row is invisible even when its neighbour's is filled."""
    model = lively_model()
    latents, cond = world(rows=2)
    ring = Ring(2)
    ring.keep(2, model.commit(latents[:, [2, 1, 0]], at(cond, 2)))
    ages = ring.view(3).ages_BS.clone()
    ages[1] = 0  # the second session has just begun
    view = KVView(ring.k, ring.v, ages)
    both = model.denoise(latents[:, 3], latents[:, [2, 1]], cond.sigma_BF[:, 3], at(cond, 3), view)
    fresh = dataclasses.replace(view, k_BLNHSD=torch.zeros_like(ring.k), v_BLNHSD=torch.zeros_like(ring.v))
    empty = model.denoise(latents[:, 3], latents[:, [2, 1]], cond.sigma_BF[:, 3], at(cond, 3), fresh)
    torch.testing.assert_close(both[1], empty[1])
    assert (both[0] - empty[0]).abs().max() > 1e-3
