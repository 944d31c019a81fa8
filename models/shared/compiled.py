"""Compiled forms of a network's parts, beside the eager ones that are always right.

    part, arguments -> CacheKey -> compiled form, made when it is first asked for

The first call of every key runs both forms and compares them, so a compiler's mistake is an error and never a picture.
Bounded: the form that was used longest ago is dropped. Knows no family.
"""

import os
import shutil
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from ..contract.cache_key import CacheKey
from ..contract.loop import StepKind

KEPT = 64
COMPILERS = ("g++", "clang++", "c++")
Parts = tuple[Tensor, ...]


class NoCompiler(RuntimeError):
    """Compiled blocks were asked for where nothing can compile them."""


class CompileMismatch(ArithmeticError):
    """A compiled form is further from the eager one than the card allows."""


class CompiledRun(Protocol):
    """Calls one part of a network: `function(*arguments)`, in whatever form."""

    def __call__(self, part: str, function: Callable[..., Parts], *arguments: Any) -> Parts: ...


def eager(part: str, function: Callable[..., Parts], *arguments: Any) -> Parts:
    """The part as it is written."""
    return function(*arguments)


class CompileCache:
    """Of the card `made_by`. `tolerance`: largest difference from the eager form, as a share of its largest value."""

    def __init__(self, made_by: CacheKey, tolerance: float) -> None:
        self._made_by, self._tolerance = made_by, tolerance
        self._forms: OrderedDict[CacheKey, Callable[..., Parts]] = OrderedDict()

    @property
    def keys(self) -> tuple[CacheKey, ...]:
        """Of the forms there are, oldest use first."""
        return tuple(self._forms)

    def of(self, kind: StepKind) -> CompiledRun:
        """How the parts of one kind of step run."""

        def run(part: str, function: Callable[..., Parts], *arguments: Any) -> Parts:
            shape = tuple(tuple(value.shape) for value in arguments if isinstance(value, Tensor))
            return self.call(self._made_by.part(part, step=kind, shape=shape), function, arguments)

        return run

    def call(self, key: CacheKey, function: Callable[..., Parts], arguments: tuple[Any, ...]) -> Parts:
        """The form of exactly this key, made and compared when it is first asked for. Raises `CompileMismatch`."""
        form = self._forms.get(key)
        if form is not None:
            self._forms.move_to_end(key)
            return form(*arguments)
        form = torch.compile(function, dynamic=False, fullgraph=True)
        made, expected = form(*arguments), function(*arguments)
        self._compare(key, made, expected)
        self._forms[key] = form
        if len(self._forms) > KEPT:
            self._forms.popitem(last=False)
        return made

    def _compare(self, key: CacheKey, made: Parts, expected: Parts) -> None:
        for ours, reference in zip(made, expected, strict=True):
            size = float(reference.float().abs().max().clamp_min(1e-12))
            error = float((ours.float() - reference.float()).abs().max()) / size
            if not error <= self._tolerance:
                raise CompileMismatch(
                    f"{key.component} of '{key.card}' compiled for {key.step} is off by {error:.3g} of its largest "
                    f"value, {self._tolerance:.3g} is allowed"
                )


def require_compiler(device: torch.device) -> None:
    """Raise `NoCompiler` unless blocks can be compiled for this device."""
    if device.type != "cpu":
        return
    named = os.environ.get("CXX")
    if named is not None and shutil.which(named) is None:
        raise NoCompiler(f"compiled blocks need a C++ compiler, and CXX names '{named}', which is not there")
    if named is None and not any(shutil.which(name) for name in COMPILERS):
        raise NoCompiler(f"compiled blocks need a C++ compiler ({', '.join(COMPILERS)}, or CXX): none was found")
