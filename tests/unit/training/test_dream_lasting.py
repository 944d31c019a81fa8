"""Worlds that labels speak of, and tokens that are still those of a world after hundreds of frames by themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from worldroom.models.dream.card import WEIGHTS
from worldroom.models.dream.runtime import load_networks
from worldroom.models.dream.shape import DreamShape
from worldroom.models.drive import memory
from worldroom.training.dream.data import lead_in, private
from worldroom.training.dream.dice import Luck, new_luck
from worldroom.training.dream.files import KEPT
from worldroom.training.dream.settle import settled
from worldroom.training.dream.stage_recurrence import load_recurrence
from worldroom.training.drive.simulator.driver import new_driver
from worldroom.training.drive.simulator.world import World, advance, first_world

pytestmark = pytest.mark.usefixtures("one_thread")
SIDES = slice(32, 96)  # of the labels: marks of what stands beside the road
STRIPES = (6, 7)


def driven(worlds: int, seed: int = 3) -> tuple[World, Luck, np.random.Generator]:
    rng = np.random.default_rng(seed)
    world, luck = first_world(rng, worlds), new_luck(rng, worlds)
    lead_in(world, luck, rng)
    return world, luck, rng


def test_a_world_is_found_again_in_its_labels_and_goes_on_alike() -> None:
    world, luck, rng = driven(32)
    found, found_luck = settled(private(world, luck), rng)
    driver = new_driver(rng, 32)
    for _ in range(20):
        keys, dice = driver.controls(world), rng.standard_normal((32, 5))
        advance(world, keys, luck.meant(dice))
        advance(found, keys, found_luck.meant(dice))
    off = np.square(private(world, luck) - private(found, found_luck)).mean(0)
    assert off.mean() < 0.01


def test_labels_that_could_not_be_become_those_of_a_world() -> None:
    world, luck, rng = driven(64)
    true = private(world, luck)
    faded = true.copy()
    faded[:, STRIPES] *= 0.4
    faded[:, SIDES] *= 0.7
    mended = private(*settled(faded, rng))
    assert np.hypot(*mended[:, STRIPES].T) == pytest.approx(1.4, abs=1e-3)
    assert np.square(mended[:, SIDES] - true[:, SIDES]).mean() < 0.02
    nothing = true.copy()
    nothing[:, SIDES] *= 0.3
    assert np.abs(private(*settled(nothing, rng))[:, SIDES]).max() == 0
    wild = private(*settled(true + 5 * rng.standard_normal(true.shape).astype(np.float32), rng))
    again = private(*settled(wild, rng))
    assert np.square(wild - again)[:, :16].mean() < 1e-3


@torch.inference_mode()
def test_shipped_tokens_are_those_of_a_world_after_six_hundred_frames() -> None:
    """Before they had learned to last, phases faded to a third and values ran away."""
    worlds = 48
    world, luck, rng = driven(worlds)
    heads = load_recurrence(KEPT / "lasting.pt", DreamShape())
    transformer, _ = load_networks(WEIGHTS)
    state = heads.writes(torch.from_numpy(private(world, luck)))
    driver, luck_of = new_driver(rng, worlds), torch.Generator().manual_seed(0)
    for _ in range(600):
        beside, _ = settled(heads.reads(state).numpy(), rng)
        keys = torch.from_numpy(driver.controls(beside)).float()
        state = transformer.onward(state, keys, torch.randn(worlds, transformer.shape.noise, generator=luck_of))
    labels = heads.reads(state).numpy()
    assert np.hypot(*labels[:, STRIPES].T).mean() > 1.0
    whole, half = ((np.abs(labels[:, SIDES]) > mark).sum(1).mean() / 2 for mark in (1.2, 0.5))
    assert whole > 5.0 and half - whole < 9.0
    assert 0.4 < labels[:, 16:32].std() < 0.9  # bends: .65
    assert 0.7 < labels[:, 96].std() < 1.3  # what bends them: 1
    assert float((state - heads.writes(heads.reads(state))).square().mean()) < 0.05


@torch.inference_mode()
def test_a_car_that_is_braked_for_long_stands_and_starts_again() -> None:
    """Of the tokens before, half of the cars were off by themselves after 200 frames (.55 stood)."""
    worlds, held, started = 48, 200, 72
    world, luck, _ = driven(worlds)
    heads = load_recurrence(KEPT / "lasting.pt", DreamShape())
    transformer, _ = load_networks(WEIGHTS)
    state, noise = heads.writes(torch.from_numpy(private(world, luck))), torch.Generator().manual_seed(1)
    speeds = []
    for pressed, frames in (((0, 0, 0, 1), held), ((0, 0, 1, 0), started)):
        down = torch.tensor([pressed], dtype=torch.float32).expand(worlds, -1)
        for _ in range(frames):
            state = transformer.onward(state, down, torch.randn(worlds, transformer.shape.noise, generator=noise))
        speeds.append(memory.SPEED_MIDDLE + memory.SPEED_UNIT * heads.reads(state)[:, 0])
    assert float((speeds[0].abs() < 2).float().mean()) > 0.85
    assert float((speeds[1] > 8).float().mean()) > 0.85
