"""The memory tokens say where things are, and the camera puts them where the simulator draws them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from worldroom.models.drive.memory import MARK, PLACE_METRES, VIEW, seen
from worldroom.training.drive.data import lead_in, new_innovator
from worldroom.training.drive.remember import remember
from worldroom.training.drive.simulator.labels import road_centre_px
from worldroom.training.drive.simulator.panorama import PERIOD
from worldroom.training.drive.simulator.road import FOCAL
from worldroom.training.drive.simulator.world import World, first_world

MIDDLE_OF_ROW_58 = 5 * 2 + 2  # third sampled row of token row 3, third of its five channels


def cars(sessions: int) -> World:
    world = first_world(np.random.default_rng(3), sessions)
    lead_in(world, new_innovator(3, sessions), np.random.default_rng(3), 80)
    return world


def test_the_projected_road_lies_where_the_simulator_draws_it() -> None:
    world = cars(6)
    view = seen(torch.from_numpy(remember(world))).view(6, 5, 8, VIEW)
    token = torch.atanh(view[:, 3, 4, MIDDLE_OF_ROW_58])  # token 4 of the row is 72 pixels from the left
    assert (72 - 16 * token).numpy() == pytest.approx(road_centre_px(world)[:, 2], abs=0.5)


def test_the_speed_bar_fills_the_lowest_tokens_from_the_left() -> None:
    world = cars(1)
    world.speed_B[:] = 22.5  # 3 + 30 pixels: two tokens and one pixel
    fill = seen(torch.from_numpy(remember(world))).view(5, 8, VIEW)[4, :, 24]
    assert fill.numpy() == pytest.approx([1, 1, 1 / 16, 0, 0, 0, 0, 0], abs=1e-4)


def test_a_token_of_the_sky_knows_where_in_the_panorama_it_looks() -> None:
    world = cars(3)
    turned = (world.yaw_B + world.heading_B) * FOCAL
    wave = seen(torch.from_numpy(remember(world))).view(3, 5, 8, VIEW)[:, 0, 2, 25]  # token 2: column 40
    assert wave.numpy() == pytest.approx(np.sin(2 * np.pi * (turned + 40) / PERIOD), abs=1e-4)


def test_an_object_is_a_mark_at_its_distance_with_the_sign_of_its_kind() -> None:
    world = cars(1)
    world.object_BSO[:] = -1e9
    world.object_BSO[0, 1, 0] = world.distance_B[0] + PLACE_METRES[20]
    world.kind_BSO[0, 1, 0] = -1
    left, right = remember(world)[0, 1:]
    assert right[20] == pytest.approx(-MARK, abs=0.01)
    assert np.abs(left).max() == 0
    assert np.abs(right[:17]).max() < 0.1


def test_a_view_has_the_leading_axes_of_its_memory() -> None:
    assert seen(torch.zeros(2, 5, 3, 32)).shape == (2, 5, 40, VIEW)
