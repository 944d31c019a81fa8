"""The sizes of the dream's networks."""

from __future__ import annotations

from dataclasses import dataclass

from .card import CHANNELS, HEADS, LAYOUT, NOISE, STATE, TOKENS, WIDTH, WINDOW


@dataclass(frozen=True, slots=True)
class DreamShape:
    """All sizes; two models with equal shapes can exchange weights."""

    width: int = WIDTH
    heads: int = HEADS
    layout: str = LAYOUT
    window: int = WINDOW
    tokens: int = TOKENS
    channels: int = CHANNELS
    controls: int = 4
    look: int = 12
    noise: int = NOISE
    state: int = STATE

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
