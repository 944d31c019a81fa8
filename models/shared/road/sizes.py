"""The sizes that networks of the road have in common."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RoadSizes:
    """Two networks with equal sizes can exchange weights. `layout`: a letter for each block, S spatial, T temporal."""

    width: int
    heads: int
    layout: str
    window: int
    tokens: int
    channels: int
    controls: int
    look: int

    @property
    def temporal(self) -> int:
        """Blocks that keep K and V."""
        return self.layout.count("T")

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def entries(self) -> int:
        """Ring entries: the window, and one that is free for staging."""
        return self.window + 1
