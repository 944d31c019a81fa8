"""Many worlds stepped together: their chunks run as one batch on the device.

A world that is over begins anew with the next step (`AutoresetMode.NEXT_STEP`), whose action it does not take.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from .env import SEED_MAX
from .hooks import Action, Over, Reward, Step, never, nothing
from .register import MAX_STEPS
from .worlds import SteppedWorlds

Pictures = npt.NDArray[np.uint8]


class WorldVectorEnv(VectorEnv[Pictures, dict[str, npt.NDArray[Any]], npt.NDArray[Any]]):
    """As `WorldEnv`, with a leading axis of worlds; `max_episode_steps` cuts each one off by itself."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        card: str = "drive",
        prompt: str | None = None,
        steps: int | None = None,
        reward: Reward = nothing,
        over: Over = never,
        render_mode: str | None = None,
        max_episode_steps: int = MAX_STEPS,
    ) -> None:
        self._worlds = SteppedWorlds(card, num_envs, prompt, steps)
        self.num_envs, self.render_mode = num_envs, render_mode
        self.metadata = {**type(self).metadata, "render_fps": self._worlds.card.frame.fps}
        self.single_observation_space = self._worlds.observation_space
        self.single_action_space = self._worlds.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._reward, self._over, self._most = reward, over, max_episode_steps
        self._pictures = np.zeros(self.observation_space.shape or (), np.uint8)
        self._ages = np.zeros(num_envs, np.int64)
        self._done = np.zeros(num_envs, np.bool_)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Pictures, dict[str, Any]]:
        """`seed`: one for each world, or one from which theirs are counted."""
        if isinstance(seed, int):
            seeds: list[int | None] = [seed + number for number in range(self.num_envs)]
        else:
            seeds = seed if seed is not None else [None] * self.num_envs
        super().reset(seed=seeds[0])
        drawn = [np.random.default_rng(own) if own is not None else self.np_random for own in seeds]
        self._begin(list(range(self.num_envs)), [int(source.integers(SEED_MAX)) for source in drawn])
        return self._pictures.copy(), {}

    def step(
        self, actions: dict[str, npt.NDArray[Any]]
    ) -> tuple[Pictures, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        rewards = np.zeros(self.num_envs, np.float64)
        over = np.zeros(self.num_envs, np.bool_)
        anew = [number for number in range(self.num_envs) if self._done[number]]
        going = [number for number in range(self.num_envs) if not self._done[number]]
        if anew:
            self._begin(anew, [int(self.np_random.integers(SEED_MAX)) for _ in anew])
        taken: list[Action] = [{name: values[number] for name, values in actions.items()} for number in going]
        for number, action, frames in zip(going, taken, self._worlds.step(going, taken), strict=True):
            step = Step(self._pictures[number].copy(), action, frames)
            rewards[number], over[number] = self._reward(step), self._over(step)
            self._pictures[number] = frames[-1]
            self._ages[number] += 1
        cut = (self._ages >= self._most) & ~over
        self._done = over | cut
        return self._pictures.copy(), rewards, over, cut, {}

    def render(self) -> tuple[Pictures, ...] | None:
        return tuple(self._pictures) if self.render_mode == "rgb_array" else None

    def close_extras(self, **kwargs: Any) -> None:
        self._worlds.close()

    def _begin(self, numbers: list[int], seeds: list[int]) -> None:
        for number, frames in zip(numbers, self._worlds.begin(numbers, seeds), strict=True):
            self._pictures[number] = frames[-1]
            self._ages[number] = 0
