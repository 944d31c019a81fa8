"""The memory tokens say where things are, and the camera shows each picture token what the simulator draws there."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from worldroom.models.drive.camera import CELLS, DEEP, GUESS, ROWS, VIEW, Camera
from worldroom.models.drive.memory import HORIZON, MARK, PLACE_METRES
from worldroom.models.shared.road.look import ONE_HOT
from worldroom.training.drive.data import lead_in, new_innovator
from worldroom.training.drive.remember import remember
from worldroom.training.drive.simulator.labels import road_centre_px
from worldroom.training.drive.simulator.panorama import PERIOD
from worldroom.training.drive.simulator.road import CAMERA, FOCAL, HALF_ROAD
from worldroom.training.drive.simulator.world import World, first_world

ROAD, BANDS, OBJECTS = 4 * CELLS * ROWS, 7 * ROWS, 8 * CELLS * CELLS


@pytest.fixture
def camera() -> Camera:
    torch.manual_seed(0)
    return Camera().requires_grad_(False)


def cars(sessions: int) -> World:
    world = first_world(np.random.default_rng(3), sessions)
    lead_in(world, new_innovator(3, sessions), np.random.default_rng(3), 80)
    return world


def view_of(camera: Camera, world: World) -> Tensor:
    """[sessions, 5, 8, VIEW]"""
    view: Tensor = camera(torch.from_numpy(remember(world)), torch.from_numpy(world.look()))
    return view.unflatten(1, (5, 8))


def cells_of(view: Tensor, channels: slice, rows: int, of: int, which: int) -> Tensor:
    """One kind of cell put together to a plane [sessions, 5 * rows, 8 * CELLS]."""
    parts = view[..., channels].unflatten(-1, (rows, CELLS, of))[..., which]
    return parts.transpose(2, 3).flatten(1, 2).flatten(2, 3)


def test_the_road_lies_where_the_simulator_draws_it(camera: Camera) -> None:
    world = cars(6)
    asphalt = cells_of(view_of(camera, world), slice(0, ROAD), ROWS, 4, 0)
    row = asphalt[:, 46 // 2]  # rows of 2 pixels
    column = (torch.arange(32) + 0.5) * 4
    whole = ((row[:, 0] == 0) & (row[:, -1] == 0)).numpy()  # both edges are in view
    assert whole.sum() >= 4
    middle = ((row * column).sum(1) / row.sum(1)).numpy()
    assert middle[whole] == pytest.approx(road_centre_px(world)[whole, 1], abs=3)  # less than a cell
    assert bool((asphalt[:, : HORIZON // 2] == 0).all()), "no road in the sky"


def test_the_speed_bar_fills_the_lowest_tokens_from_the_left(camera: Camera) -> None:
    world = cars(1)
    world.speed_B[:] = 22.5  # 3 + 30 pixels: two tokens and one pixel
    fill = view_of(camera, world)[0, 4, :, ROAD + BANDS + OBJECTS]
    assert fill.numpy() == pytest.approx([1, 1, 1 / 16, 0, 0, 0, 0, 0], abs=1e-4)


def test_a_token_of_the_sky_sees_the_panorama_where_it_looks(camera: Camera) -> None:
    world = cars(3)
    ramp = torch.arange(PERIOD // 2, dtype=torch.float32)[:, None].expand(-1, DEEP)
    camera.panorama.copy_(torch.stack([ramp, ramp]).flatten().expand(5, -1))
    sky = view_of(camera, world)[:, 0, :, ROAD + BANDS + OBJECTS + 1 :]
    turned = (world.yaw_B + world.heading_B) * FOCAL
    columns = turned[:, None] + np.arange(8) * 16 + 0.5  # each token's first sample
    wanted = 4 * (columns / 2 % (PERIOD // 2))
    far_from_the_seam = wanted < 4 * (PERIOD // 2 - 1)
    assert sky[..., 0].numpy()[far_from_the_seam] == pytest.approx(wanted[far_from_the_seam], abs=0.2)


def test_an_object_is_a_mark_at_its_distance_with_the_sign_of_its_kind() -> None:
    world = cars(1)
    world.object_BSO[:] = -1e9
    world.object_BSO[0, 1, 0] = world.distance_B[0] + PLACE_METRES[20]
    world.kind_BSO[0, 1, 0] = -1
    left, right = remember(world)[0, 1:]
    assert right[20] == pytest.approx(-MARK, abs=0.01)
    assert np.abs(left).max() == 0
    assert np.abs(right[:17]).max() < 0.1


@pytest.mark.parametrize("metres", [13.7, 22.2, 30.0])
def test_the_camera_shows_an_object_once_where_it_stands(camera: Camera, metres: float) -> None:
    world = cars(1)
    world.tape_BC[:], world.head_B[:], world.offset_B[:], world.heading_B[:] = 0, 0, 0, 0
    world.object_BSO[:] = -1e9
    world.object_BSO[0, 1, 0] = world.distance_B[0] + metres
    world.kind_BSO[0, 1, 0] = 1
    objects = slice(ROAD + BANDS, ROAD + BANDS + OBJECTS)
    view = view_of(camera, world)
    first, second = (cells_of(view, objects, CELLS, 8, 4 * kind)[0] for kind in (0, 1))
    wide, tall, beside = GUESS
    assert float(first.abs().max()) == 0
    area = float(second.sum()) * 16 / (FOCAL / metres) ** 2
    assert area == pytest.approx(wide * tall, rel=0.15)
    foot = HORIZON + CAMERA * FOCAL / metres
    across, up = (torch.arange(32) + 0.5) * 4, (torch.arange(20) + 0.5) * 4
    middle = (second.sum(0) * across).sum() / second.sum(), (second.sum(1) * up).sum() / second.sum()
    assert float(middle[0]) == pytest.approx(64 + FOCAL * (HALF_ROAD + beside) / metres, abs=2)
    assert float(middle[1]) == pytest.approx(foot - tall / 2 * FOCAL / metres, abs=2)


def test_a_view_has_the_leading_axes_of_its_memory(camera: Camera) -> None:
    looks = torch.from_numpy(ONE_HOT[:10]).view(2, 5, -1)
    assert camera(torch.zeros(2, 5, 3, 32), looks).shape == (2, 5, 40, VIEW)
