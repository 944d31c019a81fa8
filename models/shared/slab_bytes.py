"""Parts of a slab as bytes and back, bit for bit, from and to any device; for snapshots."""

import torch
from torch import Tensor


def to_bytes(*parts: Tensor) -> bytes:
    """The parts one after the other, each row by row."""
    return b"".join(part.contiguous().cpu().view(-1).view(torch.uint8).numpy().tobytes() for part in parts)


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
