"""The simulated driving world: deterministic, follows the keys, and fades between looks linearly."""

from __future__ import annotations

import numpy as np
import pytest
from worldroom.models.drive.innovations import INNOVATIONS, draw, start
from worldroom.models.shared.road.look import ONE_HOT, THEMES, number_of, theme_of
from worldroom.training.drive.data import lead_in, new_innovator
from worldroom.training.drive.simulator.labels import road_centre_px, visible_objects
from worldroom.training.drive.simulator.render import render
from worldroom.training.drive.simulator.road import DEPTH_R, ROW_DISPLACEMENT
from worldroom.training.drive.simulator.world import LIMIT, World, advance, first_world, switch_theme

NOTHING, GAS, BRAKE = [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]
LEFT, RIGHT = [1, 0, 1, 0], [0, 1, 1, 0]


def cars(sessions: int, seed: int = 0) -> World:
    world = first_world(np.random.default_rng(seed), sessions)
    lead_in(world, new_innovator(seed, sessions), np.random.default_rng(seed), 60)
    return world


def drive(world: World, keys: list[int], frames: int) -> None:
    sessions = len(world.speed_B)
    for _ in range(frames):
        advance(world, np.tile(np.array(keys, np.int8), (sessions, 1)), np.zeros((sessions, INNOVATIONS), np.float32))


def test_the_same_start_keys_and_innovations_give_the_same_picture() -> None:
    first, second = cars(2), cars(2)
    drive(first, LEFT, 10)
    drive(second, LEFT, 10)
    assert np.array_equal(render(first), render(second))


def test_steering_left_moves_the_road_to_the_right() -> None:
    left, right = cars(8), cars(8)
    drive(left, LEFT, 12)
    drive(right, RIGHT, 12)
    assert (road_centre_px(left)[:, 1] > road_centre_px(right)[:, 1]).all()


def test_the_brake_stops_a_car_from_14_metres_a_second_in_24_frames() -> None:
    world = cars(3)
    world.speed_B[:] = 14.0
    drive(world, BRAKE, 24)
    assert world.speed_B == pytest.approx(0.6, abs=0.05)


def test_a_car_that_always_steers_right_keeps_the_road_in_view() -> None:
    world = cars(4)
    drive(world, RIGHT, 200)
    assert (np.abs(world.offset_B) <= LIMIT).all()
    assert (np.abs(road_centre_px(world)[:, 1] - 64) < 64).all()


def test_half_a_fade_is_half_of_both_pictures() -> None:
    old, new, half = cars(1), cars(1), cars(1)
    old.theme_B[:] = old.theme_before_B[:] = 3
    new.theme_B[:] = new.theme_before_B[:] = 50
    half.theme_B[:] = half.theme_before_B[:] = 3
    switch_theme(half, np.array([True]), np.array([50]), np.array([2]))
    for world in (old, new, half):
        drive(world, GAS, 1)
    mean = (render(old).astype(int) + render(new).astype(int)) / 2
    assert np.abs(render(half) - mean).max() <= 1
    assert half.look()[0] == pytest.approx((ONE_HOT[3] + ONE_HOT[50]) / 2)


def test_an_offered_object_appears_unless_the_last_one_is_too_near() -> None:
    world = cars(1)
    world.object_BSO[:] = -1e9
    world.tape_BC[:], world.head_B[:], world.heading_B[:], world.speed_B[:] = 0, 0, 0, 15
    offer = np.array([[0, 1, 1, 0, 0]], np.float32)
    advance(world, np.array([GAS], np.int8), offer)
    assert visible_objects(world)[0] == 1
    advance(world, np.array([GAS], np.int8), offer)
    assert visible_objects(world)[0] == 1


def test_a_constant_bend_displaces_the_road_by_half_curvature_times_distance_squared() -> None:
    metres = ROW_DISPLACEMENT.sum(1) * 0.01  # curvature 0.01 everywhere
    near = DEPTH_R < 100
    assert metres[near] == pytest.approx(0.005 * DEPTH_R[near] ** 2, rel=0.02, abs=0.01)


def test_innovations_depend_on_seed_branch_and_frame_alone() -> None:
    state = start(7, 0)
    row, after = draw(7, 0, 12, state)
    again, _ = draw(7, 0, 12, state)
    other, _ = draw(7, 1, 12, state)
    assert np.array_equal(row, again)
    assert not np.array_equal(row, other)
    assert after != state


def test_kinds_are_given_only_with_a_spawn_and_bends_stay_within_one() -> None:
    state, rows = start(1, 0), []
    for frame in range(3000):
        row, state = draw(1, 0, frame, state)
        rows.append(row)
    table = np.stack(rows)
    assert np.abs(table[:, 0]).max() <= 1
    assert set(np.unique(table[:, 2][table[:, 1] == 0])) == {0}
    assert set(np.unique(table[:, 2][table[:, 1] == 1])) == {-1, 1}
    assert 0.07 < table[:, 1].mean() < 0.13


def test_theme_numbers_and_themes_are_one_to_one() -> None:
    assert [number_of(theme_of(n)) for n in range(THEMES)] == list(range(THEMES))
    assert (ONE_HOT.sum(1) == 3).all()
