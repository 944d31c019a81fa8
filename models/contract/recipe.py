"""RecipeSpec: how weights were made and therefore how alone they may be run.

A runtime choice (sampler, steps, precision) outside the recipe is a `RecipeMismatch` at load, never a bad picture.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class Precision(StrEnum):
    """Of weights and activations. FP8: weights of the blocks are 8-bit floats with a scale per row, the rest is BF16.
    KV8: keys and values are kept as 8-bit integers with a scale per token and head.
    """

    FP32 = "fp32"
    BF16 = "bf16"
    INT = "int"
    FP8 = "fp8"
    FP32_KV8 = "fp32-kv8"
    BF16_KV8 = "bf16-kv8"
    FP8_KV8 = "fp8-kv8"

    @property
    def narrow_weights(self) -> bool:
        return self in (Precision.FP8, Precision.FP8_KV8)

    @property
    def narrow_kv(self) -> bool:
        return self in (Precision.FP32_KV8, Precision.BF16_KV8, Precision.FP8_KV8)

    @property
    def full(self) -> bool:
        """Activations are FP32."""
        return self in (Precision.FP32, Precision.FP32_KV8)


@dataclass(frozen=True, slots=True)
class RuntimeChoice:
    """What a server wants to run a card with. `exact` False: steps may be skipped, within the recipe's `inexact`.
    `compiled`: blocks run compiled, within the recipe's `compiled`. `invariant`: rows of several sessions share a pass
    and each has the bits it has alone.
    """

    sampler: str
    steps: int
    precision: Precision
    exact: bool = True
    compiled: bool = False
    invariant: bool = False

    @property
    def mode(self) -> str:
        """What is not as usual about it, for journals; `in_mode` reads it."""
        chosen = zip(_MODES, (not self.exact, self.compiled, self.invariant), strict=True)
        return "+".join(name for name, on in chosen if on)

    def in_mode(self, mode: str) -> "RuntimeChoice":
        """Raises ValueError on a mode this version does not have."""
        names = mode.split("+") if mode else []
        if unknown := set(names) - set(_MODES):
            raise ValueError(f"unknown mode '{'+'.join(sorted(unknown))}': there are {', '.join(_MODES)}")
        inexact, compiled, invariant = (name in names for name in _MODES)
        return replace(self, exact=not inexact, compiled=compiled, invariant=invariant)


_MODES = ("inexact", "compiled", "invariant")


@dataclass(frozen=True, slots=True)
class RecipeSpec:
    """The recipe behind a card's weights.

    `sigmas` maps a step count to its noise levels, first to last (the final x0 follows the last one); a step count
    that is not listed was not trained for. `parents`: weights this recipe started from. `command` retrains it.
    `inexact`: the largest error of a frame (of 1) against the exact run from the same state that a faster mode may
    make; 0 = there is no such mode. `narrow`: the largest error of a step's velocity, of order 1, that a narrow
    precision may make. `compiled`: the same for compiled blocks, None = they are not offered. `invariant`: whether the
    network has a form whose rows never feel their batch. `samplers`: others that these weights may be run with.
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
    narrow: tuple[tuple[Precision, float], ...] = ()
    compiled: float | None = None
    invariant: bool = False
    samplers: tuple[str, ...] = ()

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
        if choice.sampler not in (self.sampler, *self.samplers):
            raise RecipeMismatch(self.name, "sampler", choice.sampler, (self.sampler, *self.samplers))
        self.levels(choice.steps)
        if choice.precision not in self.precisions:
            raise RecipeMismatch(self.name, "precision", choice.precision, self.precisions)
        if not choice.exact and self.inexact == 0.0:
            raise RecipeMismatch(self.name, "mode", "inexact", ("exact",))
        if choice.compiled and self.compiled is None:
            raise RecipeMismatch(self.name, "mode", "compiled", ("eager",))
        if choice.invariant and not self.invariant:
            raise RecipeMismatch(self.name, "mode", "invariant", ("plain",))
        if choice.invariant and choice.compiled:  # a compiler fuses and splits by the shape of the batch
            raise RecipeMismatch(self.name, "mode", "compiled and invariant", ("compiled", "invariant"))


class RecipeMismatch(ValueError):
    """A runtime choice the recipe does not allow; names both."""

    def __init__(self, recipe: str, what: str, asked: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"recipe '{recipe}' does not allow {what} '{asked}': it allows {', '.join(allowed)}")
        self.recipe, self.what, self.asked, self.allowed = recipe, what, asked, allowed
