"""Who holds the door of the engine, and what can be asked through it. Imports no tensor library."""

from collections.abc import Callable
from typing import Protocol

from .door import Command, Event, Forked, ForkSession, HistoryStep, Open, Opened, Refused
from .info import BatchRan, Capacity, CardInfo, Progress, SessionInfo


class EngineClient(Protocol):
    """What the engine's user holds. All calls and all events happen on the caller's event loop."""

    async def open(self, command: Open, events: Callable[[Event], None]) -> Opened | Refused: ...

    def post(self, command: Command) -> None:
        """Never blocks. Commands of one session keep their order."""
        ...

    def cards(self) -> tuple[CardInfo, ...]: ...

    def capacity(self) -> tuple[Capacity, ...]:
        """One entry per loaded card."""
        ...

    def sessions(self) -> tuple[SessionInfo, ...]: ...

    def steps(self) -> tuple[BatchRan, ...]:
        """The last steps of the device, oldest first; bounded."""
        ...

    @property
    def ready(self) -> bool:
        """True once every step kind is warm and priced."""
        ...

    async def close(self) -> None: ...


class SuspendableEngine(EngineClient, Protocol):
    """An engine behind worker processes: it can give a session's world away as bytes and go on with it later."""

    def suspend(self, session: str) -> bytes | None:
        """A session that stands still, for `restore`; None when its history is not whole."""
        ...

    async def restore(self, world: bytes, events: Callable[[Event], None], near: str = "") -> Opened | Refused:
        """Go on with a suspended session, paused; on the device of session `near`, if that is given. Raises ValueError
        when these bytes are none."""
        ...

    def progress(self, session: str) -> Progress:
        """How far it is, as far as the edge knows."""
        ...

    def earliest(self, session: str) -> int:
        """The earliest chunk that a session can go back to."""
        ...

    def fork(self, session: str, into: str, chunk: int, branch: int, epoch: int, shown: str) -> bytes | None:
        """The world before `chunk` as a session of another name, for `restore`; None when that is too long ago.

        It goes on in `branch` and `epoch`, with frames numbered and timed behind those of session `shown`.
        """
        ...

    async def part(self, fork: ForkSession, events: Callable[[Event], None]) -> Forked | Refused:
        """ForkSession a session that runs. Its futures are open when this returns, and share what was made before."""
        ...

    def on_disk(self, session: str) -> int:
        """Before which chunk the checkpoint of that name is that an earlier server left on the disk; 0 = none."""
        ...

    def written_down(
        self,
        opening: Open,
        history: tuple[HistoryStep, ...],
        texts: tuple[str, ...],
        progress: Progress,
        embeddings: tuple[tuple[str, bytes], ...] = (),
        since: str = "",
    ) -> bytes:
        """A world by all that happened to it since its opening, for `restore`. `embeddings`: prompts without text.

        `since`: the name under which an earlier server wrote it on the disk; then history may begin at that checkpoint.
        """
        ...
