"""The sizes of the dream's networks."""

from __future__ import annotations

from dataclasses import dataclass

from ..shared.road.sizes import RoadSizes
from .card import CHANNELS, HEADS, LAYOUT, NOISE, STATE, TOKENS, WIDTH, WINDOW


@dataclass(frozen=True, slots=True)
class DreamShape(RoadSizes):
    """`noise`: numbers of it beside the picture's. `state`: numbers of the recurrent tokens."""

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
