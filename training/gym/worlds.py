"""Worlds of one card as an environment sees them: spaces, seeds, and calls that wait. Runs an event loop of its own."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from ...clock import SystemClock
from ...engine.device.device import ThreadDevice
from ...engine.worlds import Worlds
from ...models import catalog
from ...models.contract.card import FrameSpec, Pixels
from .hooks import Action


class SteppedWorlds:
    """`count` worlds. Loading takes as long as the card's weights do. `prompt` None = the card's first suggestion."""

    def __init__(self, card: str, count: int, prompt: str | None, steps: int | None) -> None:
        catalog.prepare([card])
        loaded = catalog.load(card)
        self.card = loaded.card
        self.prompt = prompt if prompt is not None else next(iter(self.card.suggestions), "")
        clock = SystemClock()
        self._loop = asyncio.new_event_loop()
        self._worlds = Worlds(loaded, ThreadDevice(clock), clock, count, steps)
        self._loop.run_until_complete(self._worlds.start())
        self._rest = tuple(0.0 for _ in self.card.controls)

    @property
    def observation_space(self) -> spaces.Box:
        frame = self.card.frame
        return spaces.Box(0, 255, (frame.shown_height, frame.shown_width, 3), np.uint8)

    @property
    def action_space(self) -> spaces.Dict:
        """A control by its name: a key is up or down, a stick somewhere between."""
        return spaces.Dict(
            {
                control.name: spaces.Box(0.0, 1.0, (), np.float32) if control.analog else spaces.Discrete(2)
                for control in self.card.controls
            }
        )

    def begin(self, numbers: Sequence[int], seeds: Sequence[int]) -> list[npt.NDArray[np.uint8]]:
        """Those worlds anew, with every control at rest; the frames of their first chunk."""

        async def begin_all() -> None:
            for number, seed in zip(numbers, seeds, strict=True):
                await self._worlds.begin(number, seed)

        self._loop.run_until_complete(begin_all())
        return self._step(numbers, [self._rest] * len(numbers))

    def step(self, numbers: Sequence[int], actions: Sequence[Action]) -> list[npt.NDArray[np.uint8]]:
        """Frames uint8 [F, H, W, 3] of each world's next chunk."""
        names = [control.name for control in self.card.controls]
        return self._step(numbers, [tuple(float(action[name]) for name in names) for action in actions])

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.run_until_complete(self._worlds.close())
            self._loop.close()

    def _step(self, numbers: Sequence[int], controls: Sequence[tuple[float, ...]]) -> list[npt.NDArray[np.uint8]]:
        made: Any = self._worlds.step(numbers, controls, [self.prompt] * len(numbers))
        return [shown(frames, self.card.frame) for frames in self._loop.run_until_complete(made)]


def shown(frames: npt.NDArray[np.uint8], spec: FrameSpec) -> npt.NDArray[np.uint8]:
    """As viewers see them: RGB at `scale` times the model's size."""
    if spec.pixels is not Pixels.RGB:
        raise ValueError(f"frames of {spec.pixels} are not pictures for an environment: load the card for a CPU")
    return frames.repeat(spec.scale, axis=1).repeat(spec.scale, axis=2) if spec.scale > 1 else frames
