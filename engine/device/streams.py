"""How long a batch takes of what computes it: a processor by the clock, a GPU by events in the stream it works in.

    processor   [ work                    ]          the thread works itself
    GPU         [ launch ][ wait          ]          the thread hands work over and waits once, at the end
                 event [ work of the GPU ] event

A thread of the device waits, never the event loop. Launching may take much less or much more than the work itself, so
the thread's own time says nothing of a GPU.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ...clock import Clock


class Span(Protocol):
    """A piece of a stream's work, from `WorkStream.begin` on."""

    def end(self) -> float:
        """Wait until all of it has been done; the seconds that it took. Raises what the device met on the way."""
        ...


class WorkStream(Protocol):
    """What runs the work of one thread, in the order in which it was handed over."""

    def begin(self) -> Span: ...


@dataclass(frozen=True, slots=True)
class HostSpan:
    clock: Clock
    began: float

    def end(self) -> float:
        return self.clock.now() - self.began


@dataclass(frozen=True, slots=True)
class HostStream:
    """The thread itself: what it called is done when the call returns."""

    clock: Clock

    def begin(self) -> HostSpan:
        return HostSpan(self.clock, self.clock.now())


class DeviceEvent(Protocol):
    """A mark between two pieces of a GPU's work, as `torch.cuda.Event` is one."""

    def record(self) -> None: ...

    def synchronize(self) -> None:
        """Wait on this thread until the GPU has come to it."""
        ...

    def elapsed_time(self, end_event: Any, /) -> float:
        """Milliseconds of the GPU from this one to that one, both of which it has come to."""
        ...


@dataclass(frozen=True, slots=True)
class EventSpan:
    first: DeviceEvent
    event: Callable[[], DeviceEvent]

    def end(self) -> float:
        last = self.event()
        last.record()
        last.synchronize()
        return self.first.elapsed_time(last) / 1000


@dataclass(frozen=True, slots=True)
class EventStream:
    """A GPU's stream; `event` makes a mark for the calling thread's."""

    event: Callable[[], DeviceEvent]

    def begin(self) -> EventSpan:
        first = self.event()
        first.record()
        return EventSpan(first, self.event)


def gpu_stream(own: bool) -> WorkStream:
    """The calling thread's, for cards whose work a GPU does. `own`: beside the GPU's default stream, so that what this
    thread hands over runs beside the rest; everything it reads is done by then, because every span is waited for.
    """
    import torch

    if own:
        torch.cuda.set_stream(torch.cuda.Stream())  # type: ignore[no-untyped-call]
    return EventStream(partial(torch.cuda.Event, enable_timing=True, blocking=True))
