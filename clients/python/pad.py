"""The keys of one participant as `input` messages: each one whole (state now plus recent changes), so that any may
be lost.

Pure: knows no channel; `now_ms` is handed in.
"""

from collections import deque
from dataclasses import dataclass, field

from ...rtc.wire import Input, KeyEdge, Welcome

EDGES_MAX = 16


@dataclass(slots=True)
class Pad:
    """Keys held now, the last changes, and the sequence number that grows with every change."""

    seq: int = 0
    held: list[str] = field(default_factory=list)
    pointer: tuple[float, float] = (0.0, 0.0)
    _edges: deque[KeyEdge] = field(default_factory=lambda: deque(maxlen=EDGES_MAX))

    def press(self, key: str) -> int:
        """The sequence of the change (the current one when the key is down already)."""
        if key in self.held:
            return self.seq
        self.held.append(key)
        return self._changed(key, True)

    def release(self, key: str) -> int:
        if key not in self.held:
            return self.seq
        self.held.remove(key)
        return self._changed(key, False)

    def move(self, dx: float, dy: float) -> int:
        """Pointer motion in units of the picture."""
        self.pointer = (self.pointer[0] + dx, self.pointer[1] + dy)
        self.seq += 1
        return self.seq

    def message(self, now_ms: float) -> Input:
        return Input(self.seq, tuple(self.held), tuple(self._edges), self.pointer, now_ms)

    def _changed(self, key: str, down: bool) -> int:
        self.seq += 1
        self._edges.append(KeyEdge(self.seq, key, down))
        return self.seq


def key_of(welcome: Welcome | None, key: str) -> str:
    """The key that presses a control of that world, by the control's name or by one of its keys. Raises ValueError."""
    controls = welcome.controls if welcome is not None else ()
    for control in controls:
        if key == control.name and control.keys:
            return control.keys[0]
        if key in control.keys:
            return key
    known = ", ".join(f"{control.name} ({' or '.join(control.keys)})" for control in controls)
    raise ValueError(f"{key!r} presses nothing in this world; its controls are {known or 'none'}")
