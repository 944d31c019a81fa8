"""The store of checkpoints as it is, of a process that can be killed; it says what each checkpoint wrote."""

from collections.abc import Mapping
from pathlib import Path

from worldroom.engine.caches.parts import WorldPart
from worldroom.engine.caches.store import SnapshotFolder


class MortalStore(SnapshotFolder):
    """`dead`: what a process that was killed would still write or forget does not happen. `wrote`: bytes of each `put`
    before that.
    """

    def __init__(self, folder: Path, disk: Path | None = None) -> None:
        super().__init__(folder, disk)
        self.dead = False
        self.wrote: list[int] = []

    def put(
        self,
        session: str,
        body: bytes,
        number: int | None = None,
        parts: Mapping[WorldPart, bytes | None] | None = None,
        at: int = 0,
    ) -> int:
        if self.dead:
            return 0
        self.wrote.append(super().put(session, body, number, parts, at))
        return self.wrote[-1]

    def persist(self, session: str) -> int:
        return 0 if self.dead else super().persist(session)

    def forget(self, session: str) -> None:
        if not self.dead:
            super().forget(session)
