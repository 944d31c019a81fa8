"""RecipeSpec: how weights were made and therefore how alone they may be run.

A recipe refuses what its weights were not made for: another sampler, step count, precision, loop or consistency is a
`RecipeMismatch` at load, never a bad picture.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from .loop import CHUNK_ROLLOUT


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


class Method(StrEnum):
    """How weights were made.

    WRITTEN: by hand, not trained. RANDOM: drawn from a seed. FLOW: flow matching, so any solver may follow their
    velocity. DISTILLED: for few steps of one sampler, the only one they know. REWARDED: distilled, then moved by a
    reward on rollouts of their own.
    """

    WRITTEN = "written"
    RANDOM = "random"
    FLOW = "flow"
    DISTILLED = "distilled"
    REWARDED = "rewarded"

    @property
    def one_sampler(self) -> bool:
        """The sampler was part of the training."""
        return self in (Method.DISTILLED, Method.REWARDED)


class Consistency(StrEnum):
    """What a run must have in common with the runs the weights were made with. TOLERANT: errors within what the recipe
    declares. EXACT: every bit, as for weights whose own rollouts were scored; no faster or narrower mode has that.
    """

    TOLERANT = "tolerant"
    EXACT = "exact"


@dataclass(frozen=True, slots=True)
class RecipeSpec:
    """The recipe behind a card's weights. Raises `RecipeMismatch` when it contradicts itself.

    `method`: how they were made. `assumes_loop`: the loop they were made to be run by.
    `sigmas` maps a step count to its noise levels, first to last (the final x0 follows the last one); a step count
    that is not listed was not trained for. `parents`: weights this recipe started from. `command` retrains it.
    `inexact`: the largest error of a frame (of 1) against the exact run from the same state that a faster mode may
    make; 0 = there is no such mode. `narrow`: the largest error of a step's velocity, of order 1, that a narrow
    precision may make. `compiled`: the same for compiled blocks, None = they are not offered. `invariant`: whether the
    network has a form whose rows never feel their batch. `samplers`: others that these weights may be run with.
    `consistency_required`: see `Consistency`.
    """

    name: str
    sampler: str
    sigmas: tuple[tuple[float, ...], ...]
    precisions: tuple[Precision, ...]
    default: RuntimeChoice
    parents: tuple[str, ...]
    data: str
    command: str
    method: Method
    assumes_loop: str = CHUNK_ROLLOUT
    consistency_required: Consistency = Consistency.TOLERANT
    inexact: float = 0.0
    narrow: tuple[tuple[Precision, float], ...] = ()
    compiled: float | None = None
    invariant: bool = False
    samplers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.samplers and self.method.one_sampler:
            raise RecipeMismatch(
                self.name, f"samplers of {self.method} weights", ", ".join(self.samplers), (self.sampler,)
            )
        self.check(self.default)

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
        if self.consistency_required is Consistency.EXACT:
            self._check_exact(choice)

    def check_loop(self, loop: str) -> None:
        """Raise `RecipeMismatch` unless these weights were made to be run by that loop."""
        if loop != self.assumes_loop:
            raise RecipeMismatch(self.name, "loop", loop, (self.assumes_loop,))

    def _check_exact(self, choice: RuntimeChoice) -> None:
        narrow = choice.precision in {precision for precision, _ in self.narrow}
        if choice.compiled or narrow or not choice.exact:
            asked = choice.mode or str(choice.precision)
            raise RecipeMismatch(self.name, "consistency", asked, (str(Consistency.EXACT),))


class RecipeMismatch(ValueError):
    """A runtime choice the recipe does not allow; names both."""

    def __init__(self, recipe: str, what: str, asked: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"recipe '{recipe}' does not allow {what} '{asked}': it allows {', '.join(allowed)}")
        self.recipe, self.what, self.asked, self.allowed = recipe, what, asked, allowed
