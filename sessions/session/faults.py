"""What a session's people and its journal hear of the engine's faults; of a flood of them a few a second."""

from collections.abc import Callable

from ...clock import Clock
from ...engine.api import Fault
from .. import messages
from ..audience import Audience
from ..counters import RoomsCounters
from ..journal import events
from ..rate import Rate
from .adapters import SessionStack
from .prompting import Prompting


class FaultsTold:
    """See the module docstring."""

    def __init__(
        self,
        record: Callable[[events.JournalEvent], None],
        audience: Audience,
        prompting: Prompting,
        adapters: SessionStack,
        counters: RoomsCounters,
        clock: Clock,
    ) -> None:
        self._record, self._audience, self._counters, self._clock = record, audience, counters, clock
        self._prompting, self._adapters = prompting, adapters
        self._rate = Rate(per_s=2.0, burst=4)

    def tell(self, event: Fault) -> None:
        """Who asked for a prompt or a stack hears of its fault as the answer, all others of the rest."""
        self._counters.take_fault(event.code)
        self._record(events.Faulted(code=event.code, detail=event.detail, fatal=event.ends))
        told = self._prompting.failed(event) or self._adapters.failed(event)
        if not told and (event.fatal or self._rate.allows(self._clock.now())):
            self._audience.tell(messages.Problem(code=event.code, detail=event.detail))
