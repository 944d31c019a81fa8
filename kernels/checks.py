"""What is checked before an operation runs: shapes, dtypes, devices, strides, with the numbers in the error."""

from __future__ import annotations

import torch
from torch import Tensor

FLOATS = (torch.float32, torch.bfloat16, torch.float16)


class BadInput(ValueError):
    """A tensor or number an operation cannot take; the message has the numbers."""


def expect(holds: bool, message: str) -> None:
    """Raise BadInput unless it holds."""
    if not holds:
        raise BadInput(message)


def expect_dtype(name: str, dtype: torch.dtype, *wanted: torch.dtype) -> None:
    """Raise BadInput unless `dtype` is one of `wanted`."""
    if dtype not in wanted:
        raise BadInput(f"{name} is {dtype}, wanted {' or '.join(map(str, wanted))}")


def expect_shape(name: str, tensor: Tensor, shape: tuple[int | None, ...]) -> None:
    """`None` in `shape` is any size."""
    sizes = tensor.shape
    if len(sizes) == len(shape):
        for have, want in zip(sizes, shape, strict=True):
            if want is not None and have != want:
                break
        else:
            return
    raise BadInput(f"{name} is {list(sizes)}, wanted {[('any' if n is None else n) for n in shape]}")


def expect_floats(*tensors: tuple[str, Tensor]) -> None:
    """Float32, bfloat16 or float16, last axis contiguous, all on one device."""
    device = tensors[0][1].device
    for name, tensor in tensors:
        expect_dtype(name, tensor.dtype, *FLOATS)
        if tensor.device != device:
            raise BadInput(f"{name} is on {tensor.device}, {tensors[0][0]} on {device}")
        strides = tensor.stride()
        if strides and strides[-1] != 1 and tensor.shape[-1] != 1:
            raise BadInput(f"{name} has strides {strides}, the last not 1")
