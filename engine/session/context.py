"""What all parts of one session in the engine share; beside `Services`, which all sessions share. Pure data."""

from collections.abc import Callable
from dataclasses import dataclass

from .. import api
from ..cancel import CancelScope
from ..counters import Counters
from ..services import Services
from .world import SessionWorld


@dataclass(frozen=True, slots=True)
class SessionContext:
    """`scope` ends with the session; chunks have scopes of their own below it. `emit`: to whoever listens, while the
    session is not closed.
    """

    opening: api.Open
    world: SessionWorld
    services: Services
    scope: CancelScope
    counters: Counters
    emit: Callable[[api.Event], None]

    @property
    def session(self) -> str:
        return self.opening.session
