"""Who is connected to a world. Made before the session and the room, which share it; nothing here may ever block.

session -> show, tell, close -> Audience -> each participant's Sink (the edge's viewer)
room    -> connect, disconnect ----^
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..engine.api import Frame, Rendered
from .messages import Problem, ServerMessage

GOING_AWAY, TAKEN_OVER = "going_away", "taken_over"
ENDS = frozenset({TAKEN_OVER, "room_closed", "left", GOING_AWAY})
"""Problem codes after which the connection is over: the sink delivers the problem and closes."""


@dataclass(frozen=True, slots=True)
class FrameInput:
    """What a frame contains of one driver: their last input, `hold_us` from its receipt until the chunk began, and the
    controls of their player.
    """

    seq: int
    hold_us: int
    controls: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FrameInputs:
    """Of all who drive; `first`: of the first of them, which everybody else is told of."""

    first: FrameInput
    drivers: Mapping[str, FrameInput] = field(default_factory=dict)

    def of(self, participant: str) -> FrameInput:
        return self.drivers.get(participant, self.first)


class Sink(Protocol):
    """One viewer's connection: the edge's `Viewer`, which this layer may not import.

    It queues messages, in order, until its channel is open.
    """

    def send(self, message: ServerMessage) -> None: ...

    def frame(self, frame: Frame, given: FrameInput) -> None:
        """`given`: what it contains of this participant, or of who drives."""
        ...

    def rendered(self, rendered: Rendered, given: FrameInput) -> None:
        """A frame that was shown, for viewers of another rendition."""
        ...


class Audience:
    """The connections of one world by participant: each has at most one. `on_closed` is called once, at the end."""

    def __init__(self, on_closed: Callable[["Audience", str], None]) -> None:
        self._on_closed = on_closed
        self._sinks: dict[str, Sink] = {}
        self._observers: tuple[Callable[[Frame, int], None], ...] = ()

    def __len__(self) -> int:
        return len(self._sinks)

    def __contains__(self, participant: str) -> bool:
        return participant in self._sinks

    def connect(self, participant: str, sink: Sink) -> None:
        self._sinks[participant] = sink

    def disconnect(self, participant: str) -> None:
        self._sinks.pop(participant, None)

    def is_current(self, participant: str, sink: Sink) -> bool:
        """Whether `sink` is that participant's connection; a connection that was taken over is not."""
        return self._sinks.get(participant) is sink

    def send(self, participant: str, message: ServerMessage) -> None:
        """Tell one participant, if connected."""
        sink = self._sinks.get(participant)
        if sink is not None:
            sink.send(message)

    def tell(self, message: ServerMessage) -> None:
        # A copy, because a sink that fails disconnects its participant.
        for sink in tuple(self._sinks.values()):
            sink.send(message)

    def show(self, frame: Frame, inputs: FrameInputs) -> None:
        for participant, sink in tuple(self._sinks.items()):
            sink.frame(frame, inputs.of(participant))
        for observer in self._observers:
            observer(frame, inputs.first.hold_us)

    def rendered(self, rendered: Rendered, inputs: FrameInputs) -> None:
        for participant, sink in tuple(self._sinks.items()):
            sink.rendered(rendered, inputs.of(participant))

    def observe(self, observer: Callable[[Frame, int], None]) -> None:
        """Someone who gets every frame and is nobody: a recording keeps no world awake."""
        self._observers = (*self._observers, observer)

    def ignore(self, observer: Callable[[Frame, int], None]) -> None:
        self._observers = tuple(each for each in self._observers if each != observer)

    def close(self, reason: str) -> None:
        """The world has ended: every connection is told and let go."""
        sinks, self._sinks = self._sinks, {}
        for sink in sinks.values():
            sink.send(Problem(code="room_closed", detail=f"the world has ended: {reason}"))
        self._on_closed(self, reason)
