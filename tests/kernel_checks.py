"""How kernels are compared: draws, tolerances of a dtype, memory full of NaN before a kernel writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
from torch import Tensor

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_STEPS = {torch.float32: 2.0**-20, torch.float16: 2.0**-9, torch.bfloat16: 2.0**-6}


def drawn(shape: tuple[int, ...], seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def agree(given: Tensor, wanted: Tensor, slack: float = 1.0) -> None:
    """Within a few steps of the dtype; a NaN that was left unwritten never agrees."""
    assert given.dtype == wanted.dtype and given.shape == wanted.shape
    step = _STEPS[wanted.dtype] * slack
    torch.testing.assert_close(given.float(), wanted.float(), rtol=step, atol=step)


@contextmanager
def poisoned() -> Iterator[None]:
    """Fresh memory is NaN (integers: 0x5A), so an element that a kernel does not write shows."""
    plain = torch.empty

    def empty(*sizes: object, **how: object) -> Tensor:
        made: Tensor = plain(*sizes, **how)  # type: ignore[call-overload]
        return made.fill_(float("nan") if made.is_floating_point() else 0x5A)

    with patch.object(torch, "empty", empty):
        yield
