"""Where an operation runs: torch everywhere, Triton on a GPU, or under its interpreter for tests.

Triton is optional. Without it the kernels' functions are never called and every `choose()` answers torch. Under
TRITON_INTERPRET=1, set before this is imported, kernels run on CPU tensors, about a thousand times slower. numpy has no
bfloat16 product, so interpreted kernels work in float32 from the load to the store (`WIDE`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import torch

from .checks import BadInput

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None

__all__ = [
    "INTERPRETED", "WIDE", "Backend", "Build", "Choice", "choice", "jit", "power_of_two",
    "runs_triton", "tl", "triton",
]  # fmt: skip


INTERPRETED = triton is not None and os.environ.get("TRITON_INTERPRET") == "1"
WIDE = INTERPRETED


class Backend(StrEnum):
    """What runs an operation."""

    TORCH = "torch"
    TRITON = "triton"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which backend runs, and why."""

    backend: Backend
    reason: str


_CPU = Choice(Backend.TORCH, "device is cpu")


@dataclass(frozen=True, slots=True)
class Build:
    """One way a kernel is built ahead of time: types of its arguments, its constants, warps of a program.

    `divisible`: integers that are multiples of 16, as strides mostly are; pointers always are.
    """

    kernel: Any
    types: Mapping[str, str]
    constants: Mapping[str, object]
    warps: int
    label: str
    divisible: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)


def jit(function: Callable[..., Any]) -> Any:
    """`triton.jit` where Triton is installed."""
    return function if triton is None else triton.jit(function)


def choice(device: torch.device, refusals: Iterable[tuple[bool, str]]) -> Choice:
    """Triton on a GPU unless one of `refusals` (is it so, what it is) holds; torch elsewhere."""
    if triton is None:
        return Choice(Backend.TORCH, "triton is not installed")
    if device.type != "cuda":
        return _CPU if device.type == "cpu" else Choice(Backend.TORCH, f"device is {device.type}")
    for refused, reason in refusals:
        if refused:
            return Choice(Backend.TORCH, reason)
    return Choice(Backend.TRITON, f"{device.type}, triton {triton.__version__}")


def runs_triton(asked: Backend | None, chosen: Choice, device: torch.device) -> bool:
    """Whether Triton runs: as asked, else as chosen. Raises BadInput where Triton is asked for and cannot run."""
    if asked is Backend.TRITON and (triton is None or (device.type != "cuda" and not INTERPRETED)):
        raise BadInput(f"triton cannot run on {device.type}: it needs a GPU, or TRITON_INTERPRET=1 at import")
    return (asked or chosen.backend) is Backend.TRITON


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << max(0, number - 1).bit_length()
