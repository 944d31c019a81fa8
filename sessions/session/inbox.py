"""One connection's presses and motion: what arrived so far -> what steers the next chunk.

Messages may be lost, doubled or reordered. The newest state wins; an edge counts once however often it is repeated;
a tap shorter than a chunk shows in exactly one chunk. Pure: time is an argument. A new connection has a new `Inbox`,
so on every connection a client starts without old edges and with its pointer at zero (its seq may go on or restart).

    seq        1 down   2 up             3 down                     4 up
    chunks  |        0       |      1       |      2       |      3       |
    sample         W=1             W=1             W=1            W=0
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...engine.api import ControlInfo
from ..messages import Input

SEEN_EDGES = 256
PRESSED = 0.5
KEPT_RECEIPTS = 256


def keymap(controls: Sequence[ControlInfo]) -> Mapping[str, int]:
    """KeyboardEvent.code -> index of the control that it presses."""
    return {key: index for index, control in enumerate(controls) for key in control.keys}


def partly(controls: Sequence[ControlInfo]) -> frozenset[int]:
    """Indices of the controls that may be pressed part of the way."""
    return frozenset(index for index, control in enumerate(controls) if control.analog)


@dataclass(frozen=True, slots=True)
class Sample:
    """What one chunk takes from an inbox. `received`: when input `seq` arrived (None before the first input)."""

    controls: tuple[float, ...]
    pointer: tuple[float, float]
    seq: int
    received: float | None
    tapped: frozenset[int]


class Inbox:
    """The input of one connection, sampled chunk by chunk."""

    def __init__(self, keys: Mapping[str, int], controls: int, analog: frozenset[int] = frozenset()) -> None:
        self._keys = keys
        self._controls = controls
        self._analog = analog
        self._levels: dict[int, float] = {}
        self._seq = 0
        self._held: frozenset[int] = frozenset()
        self._tapped: set[int] = set()
        self._pointer = (0.0, 0.0)
        self._sampled_pointer = (0.0, 0.0)
        self._edges: OrderedDict[int, None] = OrderedDict()
        self._edge_floor = 0
        self._received: OrderedDict[int, float] = OrderedDict()

    def receive(self, message: Input, at: float) -> bool:
        """Take a message that arrived at `at` seconds; False when it holds nothing new."""
        news = False
        for edge in message.edges:
            if self._first_sight(edge.seq):
                news = True
                if edge.down and edge.key in self._keys:
                    self._tapped.add(self._keys[edge.key])
        if message.seq > self._seq:
            news = True
            self._seq = message.seq
            self._held = frozenset(self._keys[key] for key in message.held if key in self._keys)
            self._levels = dict(message.levels)
            self._pointer = message.pointer
            self._received[message.seq] = at
            if len(self._received) > KEPT_RECEIPTS:
                self._received.popitem(last=False)
        return news

    def sample(self) -> Sample:
        """Conditions for one chunk; a tap is used up by it, motion counts from the last sample."""
        tapped = frozenset(self._tapped)
        pressed = tapped | self._held
        motion = (self._pointer[0] - self._sampled_pointer[0], self._pointer[1] - self._sampled_pointer[1])
        self._tapped.clear()
        self._sampled_pointer = self._pointer
        return Sample(
            controls=tuple(1.0 if index in pressed else self._level(index) for index in range(self._controls)),
            pointer=motion,
            seq=self._seq,
            received=self._received.get(self._seq),
            tapped=tapped - self._held,
        )

    def _level(self, control: int) -> float:
        """How far a stick or trigger presses a control; all or nothing where the card knows no more."""
        level = self._levels.get(control, 0.0)
        return level if control in self._analog else float(level >= PRESSED)

    def give_back(self, sample: Sample) -> None:
        """The chunk that took `sample` was cancelled: its taps and motion belong to the next one."""
        self._tapped |= sample.tapped
        self._sampled_pointer = (
            self._sampled_pointer[0] - sample.pointer[0],
            self._sampled_pointer[1] - sample.pointer[1],
        )

    def flush(self) -> None:
        """Forget taps and motion so far; keys that are held stay held."""
        self._tapped.clear()
        self._sampled_pointer = self._pointer

    def received(self, seq: int) -> float | None:
        """When input `seq` arrived; None when it never did or is too old to be kept."""
        return self._received.get(seq)

    def _first_sight(self, seq: int) -> bool:
        """True once per edge. Edges older than the oldest of the last `SEEN_EDGES` are taken as seen."""
        if seq <= self._edge_floor or seq in self._edges:
            return False
        self._edges[seq] = None
        if len(self._edges) > SEEN_EDGES:
            oldest = min(self._edges)
            del self._edges[oldest]
            self._edge_floor = oldest
        return True
