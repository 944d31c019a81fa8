"""One of the other futures that play beside the one that leads: what steers it, and what was made of it.

    leads   ChunkDue(n) -> Begin(n, conditions) --+
    lane    ChunkDue(n) -> waits until then ------+--> Begin(n, the same, but for its own prompt or keys)

Knows neither journal nor engine.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec

from ...engine.api import CardInfo, Conditions, PromptShare
from ..messages import FutureView
from .futures import Future, MadeChunk
from .inbox import keymap
from .prompt_versions import PromptVersion

TAKEN_MAX = 64


def controls_of(card: CardInfo, held: Collection[str]) -> tuple[float, ...] | None:
    """What those keys press; None = there are none."""
    pressed = {index for key, index in keymap(card.controls).items() if key in held}
    return tuple(float(index in pressed) for index in range(len(card.controls))) if held else None


@dataclass(slots=True)
class Lane:
    """`version`: a prompt of its own; `controls`: keys of its own, which are held all the time. `due`: the chunk that
    waits for its conditions.
    """

    future: Future
    version: PromptVersion | None = None
    held: tuple[str, ...] = ()
    controls: tuple[float, ...] | None = None
    due: int | None = None
    taken: dict[int, Conditions] = field(default_factory=dict)
    made: list[MadeChunk] = field(default_factory=list)

    @property
    def number(self) -> int:
        """Of its own prompt, 0 = none."""
        return 0 if self.version is None else self.version.number

    @property
    def begins(self) -> int:
        """The chunk that it begins next."""
        return 1 + max((*self.taken, (self.made[-1].chunk if self.made else self.future.first - 1)))

    def steered(self, conditions: Conditions) -> Conditions:
        """What steers the leading future, as it steers this one."""
        own = msgspec.structs.replace(conditions, epoch=self.future.epoch)
        if self.controls is not None:
            own = msgspec.structs.replace(own, controls=self.controls, pointer=(0.0, 0.0))
        version = self.version
        if version is not None and (mix := version.mix) is not None:
            shares = tuple(PromptShare(key, weight) for key, weight in mix.items())
            own = msgspec.structs.replace(own, prompts=shares, prompt_version=version.number, recache=False)
        return own

    def begun(self, chunk: int, conditions: Conditions) -> None:
        self.due, self.taken[chunk] = None, conditions
        while len(self.taken) > TAKEN_MAX:
            del self.taken[next(iter(self.taken))]

    def done(self, chunk: int, digest: str) -> None:
        conditions = self.taken.pop(chunk, None)
        if conditions is not None:
            self.made.append(MadeChunk(chunk, conditions.epoch, digest, conditions.prompt_version, conditions.pressed))

    def view(self) -> FutureView:
        prompt = "" if self.version is None else self.version.text
        return FutureView(branch=self.future.branch, prompt=prompt, held=self.held)
