"""What the measures of clips say of the simulator's frames, and of the same frames broken on purpose."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from worldroom.models.drive.card import WEIGHTS
from worldroom.training.drive.clips import Clip, flickering, frozen, mirrored, play, softened
from worldroom.training.drive.data import Innovator
from worldroom.training.drive.flow import motion
from worldroom.training.drive.judge import Judge, load_judge
from worldroom.training.drive.measures import Reference, continuity, distance, diversity, reference_of, road_motion
from worldroom.training.drive.players import Simulated, simulator

pytestmark = pytest.mark.usefixtures("one_thread")
FRAMES = (20, 60)


@pytest.fixture(scope="module")
def judge() -> Judge:
    return load_judge(Path(WEIGHTS) / "judge.safetensors")


@pytest.fixture(scope="module")
def clip(judge: Judge) -> Clip:
    return play(simulator, judge, 6, (FRAMES,), 5)[0]


@pytest.fixture(scope="module")
def reference(judge: Judge) -> Reference:
    return reference_of(play(simulator, judge, 6, (FRAMES, (100, 140), (180, 220)), 6))


def test_a_picture_that_moves_two_columns_to_the_left_has_turned_two_columns() -> None:
    wave = torch.sin(torch.arange(132) / 7).expand(1, 3, 80, 132)
    assert float(motion(wave[..., :128], wave[..., 2:130]).turned_N) == pytest.approx(2, abs=0.1)


def test_flow_agrees_with_speed_and_steering_unless_pictures_stand_or_are_mirrored(judge: Judge, clip: Clip) -> None:
    whole, standing, wrong = (road_motion(one, judge) for one in (clip, frozen(clip), mirrored(clip)))
    assert whole.speed > 0.5 and whole.steering > 0.2
    assert standing.speed < whole.speed - 0.3
    assert wrong.steering < -0.2


def test_objects_that_vanish_for_single_frames_break_continuity(judge: Judge, clip: Clip) -> None:
    (lost,) = play(partial(simulator, lost=0.3), judge, 6, (FRAMES,), 5)
    whole = continuity(clip, judge)
    assert whole > 0.9
    assert continuity(lost, judge) < whole - 0.1


def test_broken_clips_are_farther_from_the_simulator(clip: Clip, reference: Reference) -> None:
    whole = distance(clip, reference)
    assert distance(softened(clip), reference) > 1.1 * whole
    assert distance(flickering(clip, 0.3, 0), reference) > 1.2 * whole


def test_worlds_of_other_seeds_differ_and_the_same_world_does_not(judge: Judge) -> None:
    gas = np.array([0, 0, 1, 0], np.int8)
    assert diversity(partial(simulator, alike=True), judge, 4, 240, gas) > 0.8
    same = simulator(1, 1)

    class Alike:
        """One world, shown as four."""

        world = same.world

        def next(self, keys_SK: np.ndarray[tuple[int, int], np.dtype[np.int8]]) -> torch.Tensor:
            return same.next(keys_SK[:1]).repeat(4, 1, 1, 1)

    assert diversity(lambda seed, sessions: Alike(), judge, 4, 120, gas) == 0.0


def test_roads_with_the_same_bends_are_one_road_whatever_stands_beside_it(judge: Judge) -> None:
    class OneBend(Innovator):
        """All worlds bend as the first does."""

        def draw(self) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
            rows = super().draw()
            rows[:, 0] = rows[0, 0]
            return rows

    def maker(seed: int, sessions: int) -> Simulated:
        player = simulator(seed, sessions, alike=True)
        drawn = player.course.innovator
        player.course.innovator = OneBend(drawn.first_seed, drawn.states, drawn.frame)
        return player

    assert diversity(maker, judge, 4, 160, np.array([0, 0, 1, 0], np.int8)) == 0.0
