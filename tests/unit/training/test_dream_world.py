"""The shipped dream lives off its noise and its past: without either it is measurably another, poorer world."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor
from worldroom.models.dream.card import RECIPE, WEIGHTS
from worldroom.models.dream.runtime import load_networks
from worldroom.models.drive.card import WEIGHTS as PAINTED
from worldroom.training.dream.player import Dreamed, Networks, dreamer
from worldroom.training.drive.clips import Keys
from worldroom.training.drive.judge import load_judge
from worldroom.training.drive.past import ALL, Cut, Known

pytestmark = pytest.mark.usefixtures("one_thread")
GAS: Keys = np.array([[0, 0, 1, 0]], np.int8)
BRAKE: Keys = np.array([[0, 0, 0, 1]], np.int8)
FRAMES = 96


@cache
def networks() -> Networks:
    return Networks(*load_networks(WEIGHTS), RECIPE.levels(RECIPE.default.steps))


def shown(world: Dreamed, worlds: int, frames: int = FRAMES) -> Tensor:
    """The last pictures of worlds driven straight on."""
    keys = GAS.repeat(worlds, 0)
    for _ in range(frames):
        picture = world.next(keys)
    return picture


def test_worlds_that_begin_alike_part_by_their_noise_alone() -> None:
    first, second = shown(dreamer(networks(), 11, 2, alike=True), 2)
    assert float((first - second).abs().mean()) * 127.5 > 4.0


def test_without_noise_worlds_that_begin_alike_stay_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dreamed, "drawn", lambda self, shape: torch.zeros(shape))
    first, second = shown(dreamer(networks(), 11, 2, alike=True), 2)
    assert float((first - second).abs().max()) < 1e-3


def test_without_any_past_keys_come_to_nothing() -> None:
    """Speed is nowhere but in what went before."""
    judge = load_judge(PAINTED / "judge.safetensors")

    def speed(keys: Keys, known: Known) -> float:
        world = dreamer(networks(), 12, 2, known)
        for _ in range(36):
            picture = world.next(keys.repeat(2, 0))
        return float(judge(picture).speed_N.mean())

    assert speed(GAS, ALL) - speed(BRAKE, ALL) > 8
    assert abs(speed(GAS, Cut.BOTH.to(0)) - speed(BRAKE, Cut.BOTH.to(0))) < 3
