"""Parts of a slab as bytes and back, bit for bit, from and to any device; for snapshots. And how a slab is made.

On a GPU the copy runs beside the compute: a stream of its own takes the parts to pinned host memory once what was asked
for before has run, and nobody waits for it on the device's thread.
"""

from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor

from ..contract.loaded import Copied


class Make(Protocol):
    """`torch.zeros`, or `torch.empty` where every part is cleared before it is used."""

    def __call__(self, size: tuple[int, ...], *, dtype: torch.dtype, device: torch.device) -> Tensor: ...


def clear(*parts: Tensor) -> None:
    for part in parts:
        part.zero_()


class PinnedCopy:
    """Bytes on their way from a GPU; see `contract.loaded.PendingBytes`."""

    def __init__(self, parts: tuple[Tensor, ...]) -> None:
        device = parts[0].device
        self._held = torch.empty(sum(part.nbytes for part in parts), dtype=torch.uint8, pin_memory=True)
        stream, start = _copies(device.index or 0), 0
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for part in parts:
                held = self._held[start : start + part.nbytes].view(part.dtype).view(part.shape)
                held.copy_(part, non_blocking=True)
                start += part.nbytes
            self._done = stream.record_event()

    def wait(self) -> bytes:
        self._done.synchronize()
        return self._held.numpy().tobytes()


@lru_cache
def _copies(device: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def to_bytes(*parts: Tensor) -> Copied:
    """The parts one after the other, each row by row. Those of a GPU must stay as they are until the copy is there."""
    if parts[0].is_cuda:
        return PinnedCopy(parts)
    return b"".join(part.contiguous().view(-1).view(torch.uint8).numpy().tobytes() for part in parts)


def from_bytes(data: bytes, *parts: Tensor) -> None:
    """Fill the parts in place; raises ValueError on data of another length than `to_bytes` gives."""
    expected = sum(part.nbytes for part in parts)
    if len(data) != expected:
        raise ValueError(f"{expected} bytes of cache are needed, got {len(data)}")
    held, start = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.zeros(0), 0
    for part in parts:
        if part.numel():
            part.copy_(held[start : start + part.nbytes].clone().view(part.dtype).view(part.shape))
        start += part.nbytes
