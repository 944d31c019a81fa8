"""RecipeSpec: how weights were made and therefore how alone they may be run.

A runtime choice (sampler, steps, precision) outside the recipe is a `RecipeMismatch` at load, never a bad picture.
"""

from dataclasses import dataclass
from enum import StrEnum


class Precision(StrEnum):
    FP32 = "fp32"
    BF16 = "bf16"
    INT = "int"


@dataclass(frozen=True, slots=True)
class RuntimeChoice:
    """What a server wants to run a card with. `exact` False: steps may be skipped, within the recipe's `inexact`."""

    sampler: str
    steps: int
    precision: Precision
    exact: bool = True


@dataclass(frozen=True, slots=True)
class RecipeSpec:
    """The recipe behind a card's weights.

    `sigmas` maps a step count to its noise levels, first to last (the final x0 follows the last one); a step count
    that is not listed was not trained for. `parents`: weights this recipe started from. `command` retrains it.
    `inexact`: the largest error of a frame (of 1) against the exact run from the same state that a faster mode may
    make; 0 = there is no such mode.
    """

    name: str
    sampler: str
    sigmas: tuple[tuple[float, ...], ...]
    precisions: tuple[Precision, ...]
    default: RuntimeChoice
    parents: tuple[str, ...]
    data: str
    command: str
    inexact: float = 0.0

    def steps_allowed(self) -> tuple[int, ...]:
        return tuple(len(levels) for levels in self.sigmas)

    def levels(self, steps: int) -> tuple[float, ...]:
        """Noise levels of a run with that many denoise steps; raises `RecipeMismatch`."""
        for levels in self.sigmas:
            if len(levels) == steps:
                return levels
        raise RecipeMismatch(self.name, "steps", str(steps), tuple(map(str, self.steps_allowed())))

    def check(self, choice: RuntimeChoice) -> None:
        """Raise `RecipeMismatch` unless these weights may be run like this."""
        if choice.sampler != self.sampler:
            raise RecipeMismatch(self.name, "sampler", choice.sampler, (self.sampler,))
        self.levels(choice.steps)
        if choice.precision not in self.precisions:
            raise RecipeMismatch(self.name, "precision", choice.precision, self.precisions)
        if not choice.exact and self.inexact == 0.0:
            raise RecipeMismatch(self.name, "mode", "inexact", ("exact",))


class RecipeMismatch(ValueError):
    """A runtime choice the recipe does not allow; names both."""

    def __init__(self, recipe: str, what: str, asked: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"recipe '{recipe}' does not allow {what} '{asked}': it allows {', '.join(allowed)}")
        self.recipe, self.what, self.asked, self.allowed = recipe, what, asked, allowed
