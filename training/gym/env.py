"""One world as a Gymnasium environment: a step is one chunk, the observation its last picture.

env = gymnasium.make("worldroom/Drive-v0", reward=lambda step: step.frames[-1].mean())
picture, info = env.reset(seed=7)
picture, reward, over, cut, info = env.step({"throttle": 1, "brake": 0, "left": 0, "right": 0})
"""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from .hooks import Action, Over, Reward, Step, never, nothing
from .worlds import SteppedWorlds

SEED_MAX = 2**48

Picture = npt.NDArray[np.uint8]


class WorldEnv(gymnasium.Env[Picture, Action]):
    """See the module docstring. `reward` and `over` see every step; without them it is worth nothing and never ends.

    `info["frames"]`: all pictures of the chunk. The same seed and actions make the same pictures.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012  # gymnasium reads it from the class

    def __init__(
        self,
        card: str = "drive",
        prompt: str | None = None,
        steps: int | None = None,
        reward: Reward = nothing,
        over: Over = never,
        render_mode: str | None = None,
    ) -> None:
        self._worlds = SteppedWorlds(card, 1, prompt, steps)
        pictures: Any = self._worlds.observation_space
        controls: Any = self._worlds.action_space
        self.observation_space, self.action_space = pictures, controls
        self.render_mode = render_mode
        self.metadata = {**type(self).metadata, "render_fps": self._worlds.card.frame.fps}
        self._reward, self._over = reward, over
        self._picture: Picture | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Picture, dict[str, Any]]:
        super().reset(seed=seed)
        (frames,) = self._worlds.begin([0], [int(self.np_random.integers(SEED_MAX))])
        self._picture = frames[-1]
        return self._picture, {"frames": frames}

    def step(self, action: Action) -> tuple[Picture, float, bool, bool, dict[str, Any]]:
        assert self._picture is not None, "reset before the first step"
        (frames,) = self._worlds.step([0], [action])
        step = Step(self._picture, action, frames)
        self._picture = frames[-1]
        return self._picture, float(self._reward(step)), bool(self._over(step)), False, {"frames": frames}

    def render(self) -> Picture | None:
        return self._picture if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        self._worlds.close()
