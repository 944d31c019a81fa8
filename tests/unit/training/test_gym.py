"""Worlds as Gymnasium environments: its own checker passes, seeds decide everything, many worlds equal one by one."""

import warnings

import gymnasium
import numpy as np
import pytest
import worldroom.training.gym
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from worldroom.training.gym.hooks import Step

assert worldroom.training.gym


def rolled(seed: int, steps: int, card: str = "worldroom/Toy-v0") -> list[bytes]:
    """The pictures of a world that holds one control after the other."""
    env = gymnasium.make(card)
    picture, _ = env.reset(seed=seed)
    shown = [picture.tobytes()]
    names = list(env.action_space.spaces)
    for number in range(steps):
        action = {name: int(name == names[number % len(names)]) for name in names}
        shown.append(env.step(action)[0].tobytes())
    env.close()
    return shown


@pytest.mark.parametrize("name", ["worldroom/Toy-v0", "worldroom/Drive-v0"])
def test_gymnasiums_own_checker_is_content(name: str) -> None:
    env = gymnasium.make(name, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        check_env(env.unwrapped, skip_render_check=False)
    env.close()


def test_the_same_seed_and_actions_make_the_same_pictures() -> None:
    assert rolled(7, 5) == rolled(7, 5)
    assert rolled(7, 5) != rolled(8, 5)


def test_what_a_step_is_worth_and_when_it_is_over_is_the_trainers_to_say() -> None:
    seen: list[Step] = []

    def worth(step: Step) -> float:
        seen.append(step)
        return 2.5

    env = gymnasium.make("worldroom/Toy-v0", reward=worth, over=lambda step: len(seen) == 2)
    first, _ = env.reset(seed=1)
    action = dict.fromkeys(env.action_space.spaces, 1)
    _, reward, over, cut, info = env.step(action)
    assert (reward, over, cut) == (2.5, False, False)
    assert np.array_equal(seen[0].before, first) and seen[0].action == action
    assert np.array_equal(info["frames"][-1], seen[0].frames[-1])
    assert env.step(action)[2] is True
    env.close()


def test_many_worlds_stepped_together_are_what_each_is_alone() -> None:
    worlds = gymnasium.make_vec("worldroom/Toy-v0", num_envs=3)
    pictures, _ = worlds.reset(seed=[7, 8, 7])
    names = list(worlds.single_action_space.spaces)
    shown = [pictures]
    for number in range(4):
        held = np.full(3, 0)
        actions = {name: held + int(name == names[number % len(names)]) for name in names}
        shown.append(worlds.step(actions)[0])
    for world, seed in enumerate((7, 8, 7)):
        assert [pictures[world].tobytes() for pictures in shown] == rolled(seed, 4)
    worlds.close()


def test_a_world_that_is_over_begins_anew_with_the_next_step_and_the_others_go_on() -> None:
    worlds = gymnasium.make_vec("worldroom/Toy-v0", num_envs=2, max_episode_steps=2)
    assert worlds.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    worlds.reset(seed=3)
    actions = {name: np.zeros(2, np.int64) for name in worlds.single_action_space.spaces}
    cuts = [worlds.step(actions)[3].tolist() for _ in range(5)]
    assert cuts == [[False, False], [True, True], [False, False], [False, False], [True, True]]
    worlds.close()
