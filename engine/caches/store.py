"""Worlds in folders: a manifest for each checkpoint, and its parts, each written once. Blocking.

    <session>/newest.world    manifest of the last checkpoint
    <session>/<chunk>.mark    manifest of an earlier one: so far a world can go back
    <session>/<digest>.part   content that manifests here name; a fork has another name (a hard link) of the same file

    put -> memory (a folder on tmpfs; what does not fit goes to the disk at once)
        -> persist -> on disk too, for restarts           -> retire -> on disk alone          reading looks in both

Everything is written whole or not at all, parts before the manifest that names them: a process may die at any moment.
Knows nothing of what a world is.
"""

from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from .parts import PartLost, WorldManifest, WorldPart, checked, manifest_of
from .tier import ASIDE, MARKS_MAX, NEWEST, Tier, file_of


class SnapshotFolder:
    """See the module docstring. `disk` None = nothing is persisted.

    `memory_max`, `disk_max`: bytes of all sessions of a server together; None = as many as there are. `ledgers`: a
    folder in which all that share those bounds count; None = nobody shares them.
    """

    def __init__(
        self,
        folder: Path,
        disk: Path | None = None,
        memory_max: int | None = None,
        disk_max: int | None = None,
        ledgers: Path | None = None,
    ) -> None:
        in_memory, on_disk = (None, None) if ledgers is None else (ledgers / "memory.bytes", ledgers / "disk.bytes")
        self._memory = Tier(folder, memory_max, in_memory)
        self._disk = None if disk is None else Tier(disk, disk_max, on_disk)

    @property
    def bytes_used(self) -> tuple[int, int]:
        """In memory and on disk."""
        return self._memory.used, 0 if self._disk is None else self._disk.used

    # ---- writing ---------------------------------------------------------------------------------------------------

    def put(
        self,
        session: str,
        body: bytes,
        number: int | None = None,
        parts: Mapping[WorldPart, bytes | None] | None = None,
        at: int = 0,
    ) -> int:
        """Replace the session's newest checkpoint. Returns the bytes that were written.

        `number`: of the chunk before which the world is that; None = it is no moment to go back to, and may be told as
        `at`. `parts`: all that `body` names; None = its content lies here already. Raises `StoreFull` or `PartLost`,
        and changes nothing then.
        """
        named = {} if parts is None else parts
        fresh = {part: data for part, data in named.items() if not self._holds(session, part)}
        if missing := next((part for part, data in fresh.items() if data is None), None):
            raise PartLost(f"part {missing.digest[:12]} of {missing.size} bytes was to be here and is not")
        manifest = WorldManifest(tuple(named), body, number=number or at).dumps()
        written = len(manifest) + sum(part.size for part in fresh)
        tier = self._with_room(session, written, {file_of(part) for part in named})
        with tier.writing(session, written) as write:
            for part, data in fresh.items():
                write(file_of(part), data or b"")
            if tier is self._memory:
                write(NEWEST, manifest)
        if tier is not self._memory:
            self._memory.write(session, NEWEST, manifest)
        if number is not None:
            self._memory.mark(session, number)
        self._trim(session)
        return written

    def persist(self, session: str) -> int:
        """Put the newest checkpoint on the disk too; returns the bytes written: parts that are there are not again.

        Raises `StoreFull` or `PartLost`.
        """
        manifest = self.get(session)
        if self._disk is None or manifest is None:
            return 0
        lacking = [part for part in manifest_of(manifest).parts if not self._disk.has(session, file_of(part))]
        written = len(manifest) + sum(part.size for part in lacking)
        if not self._disk.take_room(written):
            raise self._disk.full(session, written)
        with self._disk.writing(session, written) as write:
            for part in lacking:
                write(file_of(part), self.read(session, part))
            write(NEWEST, manifest)
        self._trim(session)
        return written

    def retire(self, session: str) -> None:
        """Move the newest checkpoint from memory to the disk, if there is one. Raises as `persist`."""
        if self._disk is not None and self._memory.read(session, NEWEST) is not None:
            self.persist(session)
            self._memory.remove(session, NEWEST)
            self._trim(session)

    def forget(self, session: str) -> None:
        for tier in self._tiers:
            tier.forget(session)

    def sweep(self, before: float) -> None:
        """Forget worlds on the disk that nobody has written since that Unix second."""
        if self._disk is not None:
            self._disk.sweep(before)

    # ---- reading ---------------------------------------------------------------------------------------------------

    def get(self, session: str, whole: bool = False) -> bytes | None:
        """WorldManifest of the newest checkpoint; `whole`: with its parts, so that it can be restored anywhere."""
        for tier in self._tiers:
            if (data := tier.read(session, NEWEST)) is not None:
                return self._whole(session, data) if whole else data
        return None

    def chunk(self, session: str) -> int:
        """Before which the newest checkpoint is; 0 = there is none, or none that tells."""
        try:
            return 0 if (data := self.get(session)) is None else manifest_of(data).number
        except PartLost:
            return 0

    def marks(self, session: str) -> list[int]:
        """Chunks before which the world is kept, the earliest first."""
        return self._memory.marks(session)

    def marked(self, session: str, chunk: int) -> tuple[int, bytes] | None:
        """The last of the marks at or before `chunk`: its number and manifest."""
        for number in reversed(self.marks(session)):
            if number <= chunk and (data := self._memory.read(session, f"{number}.mark")) is not None:
                return number, data
        return None

    def read(self, session: str, part: WorldPart) -> bytes:
        """A part's content, checked by its digest. Raises `PartLost`."""
        for tier in self._tiers:
            if (data := tier.read(session, file_of(part))) is not None:
                return checked(part, data)
        raise PartLost(f"part {part.digest[:12]} of {part.size} bytes of a world is gone")

    # ---- sharing ---------------------------------------------------------------------------------------------------

    def lend(self, session: str, into: Sequence[str]) -> int:
        """The newest mark of a session is the newest checkpoint of others too; its number, 0 = there is none."""
        marks = self.marks(session)
        marked = self.marked(session, marks[-1]) if marks else None
        if marked is None:
            return 0
        number, manifest = marked
        for name in into:
            self.adopt(name, manifest, session, number)
        return number

    def adopt(self, session: str, manifest: bytes, source: str, number: int | None = None) -> None:
        """Make that manifest the newest checkpoint of `session`, as `put` does. Its parts come from session `source`:
        they are shared, not copied. Raises `PartLost`.
        """
        read = manifest_of(manifest)
        number = number if number is None else read.number or number
        inline: Mapping[WorldPart, bytes | None] = (
            dict(zip(read.parts, read.inline, strict=True)) if read.inline else {}
        )
        if not inline:
            inline = dict.fromkeys(read.parts)
            for part in read.parts:
                if not self._holds(session, part) and not any(tier.link(source, session, part) for tier in self._tiers):
                    raise PartLost(f"part {part.digest[:12]} of {part.size} bytes of a world is gone")
        self.put(session, read.body, number, inline, read.number)

    def hand_over(self, session: str, to: "SnapshotFolder") -> None:
        """What memory holds of the session lies in that folder from now on; on one file system that costs no copy."""
        self._memory.hand_over(session, to._memory)

    def set_aside(self, session: str) -> tuple[str, bytes] | None:
        """Keep the newest checkpoint for another server, whatever becomes of the session: its name for `adopt`, and its
        manifest, which stands alone where there is no disk. None when there is none. Raises as `persist`.
        """
        if self._disk is None:
            data = self.get(session, whole=True)
            return None if data is None else (session, data)
        if (manifest := self.get(session)) is None:
            return None
        self.persist(session)
        name = ASIDE + session
        for part in manifest_of(manifest).parts:
            self._disk.link(session, name, part)
        self._disk.write(name, NEWEST, manifest)
        return name, manifest

    # ---- within ----------------------------------------------------------------------------------------------------

    @property
    def _tiers(self) -> tuple["Tier", ...]:
        return (self._memory,) if self._disk is None else (self._memory, self._disk)

    def _holds(self, session: str, part: WorldPart) -> bool:
        return any(tier.has(session, file_of(part)) for tier in self._tiers)

    def _whole(self, session: str, manifest: bytes) -> bytes:
        read = manifest_of(manifest)
        inline = tuple(self.read(session, part) for part in read.parts)
        return WorldManifest(read.parts, read.body, inline, read.number).dumps()

    def _with_room(self, session: str, size: int, kept: set[str]) -> "Tier":
        """Where so many bytes fit and were taken; a session's way back is given up before its present, whose parts are
        `kept`.
        """
        for _ in range(MARKS_MAX + 1):
            for tier in self._tiers:
                if tier.take_room(size):
                    return tier
            if not (marks := self.marks(session)):
                break
            self._memory.remove(session, f"{marks[0]}.mark")
            self._trim(session, kept)
        raise self._tiers[-1].full(session, size)

    def _trim(self, session: str, kept: Set[str] = frozenset()) -> None:
        """Remove parts that no manifest of the session names any more, but those."""
        named = self._memory.named(session) | kept
        self._memory.trim(session, named)
        if self._disk is not None:
            overflowed = {name for name in named if not self._memory.has(session, name)}
            self._disk.trim(session, self._disk.named(session) | overflowed)
