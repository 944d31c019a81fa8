"""Adapters: low-rank weights beside a card's own, attached to a world and swapped between two of its chunks.

file -> read (off the device's thread: names, shapes, finite) -> attach (a step) -> rows that name its key
"""

from pathlib import Path
from typing import Protocol

import msgspec


class AdapterInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`key`: sha256 of the file, its version. `rank`: the largest of its layers. `bytes`: on the device."""

    name: str
    key: str
    rank: int
    bytes: int


class BadAdapter(ValueError):
    """A file that is no adapter of this card; the message names the first wrong key, for the person who brought it."""


class Adapter(Protocol):
    """One file's weights, read and checked."""

    @property
    def rank(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


class AdapterHost(Protocol):
    """What a runtime does with adapters. `attach` and `detach` run on the device's thread, between steps."""

    def read(self, file: Path) -> Adapter:
        """Raises `BadAdapter`."""
        ...

    def attach(self, key: str, adapter: Adapter) -> None: ...

    def detach(self, key: str) -> None: ...

    def overhead(self, rank: int) -> float:
        """Part of a step's work that so many ranks in all add to a row, from counted operations."""
        ...
