"""Adapters of one engine: files in a folder by name and by content, and those that are attached, within a byte budget.

    name -> file -> key (sha256) -> read and checked (a thread) -> attached (a step on the device) -> held by sessions

Attached ones are kept as prompt features are: counted by user, unused ones until room is needed. A key is a version: a
file that changes has another one, and a world that names the old one is not given the new.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from pathlib import Path

from ...models.contract.adapters import Adapter, AdapterHost, AdapterInfo, BadAdapter
from .entry_io import MoveAdapter
from .feature_cache import FeatureCache

ADAPTERS_MAX = 64
SUFFIX = ".safetensors"

Known = tuple[tuple[int, int], str]
"""When a file was written and how large it was then, and its digest."""
Move = Callable[[MoveAdapter], Awaitable[None]]
"""Runs the row as a step on the device."""


class AdapterShelf:
    """`folder` None = there are none. Called on the event loop; files are read on threads of `executor`."""

    def __init__(self, folder: Path | None, bytes_max: int, executor: Executor) -> None:
        self._folder, self._executor = folder, executor
        self._dropped: list[tuple[str, str]] = []
        self._attached = FeatureCache(ADAPTERS_MAX, bytes_max, self._drop)
        self._infos: dict[str, AdapterInfo] = {}
        self._keys: dict[Path, Known] = {}
        self._coming: dict[str, asyncio.Event] = {}
        self.names = self._names()
        """Of the files, as they were found last."""

    @property
    def bytes_used(self) -> int:
        return self._attached.bytes_used

    async def hold_named(self, card: str, host: AdapterHost, name: str, move: Move) -> AdapterInfo:
        """Count one more user of the adapter in the file of that name; see `hold`."""
        if name not in self.names:
            self.names = self._names()
        if self._folder is None or name not in self.names:
            raise BadAdapter(f"there is no adapter '{name}' here: there are {', '.join(self.names) or 'none'}")
        file = self._folder / f"{name}{SUFFIX}"
        return await self._hold(card, host, file, await self._key(file), move)

    async def hold(self, card: str, host: AdapterHost, key: str, move: Move) -> AdapterInfo:
        """Count one more user of the adapter with that key, attached first where it is not. Raises `BadAdapter` or
        `slab_pool.PoolFull`.
        """
        if self._attached.retain(_at(card, key)):
            return self._infos[_at(card, key)]
        for name in self._names():
            assert self._folder is not None, "it has files"
            file = self._folder / f"{name}{SUFFIX}"
            if await self._key(file) == key:
                return await self._hold(card, host, file, key, move)
        raise BadAdapter(f"no file here has the adapter {key[:12]} that this world was made with")

    def release(self, card: str, key: str) -> None:
        self._attached.release(_at(card, key))

    def check_integrity(self) -> None:
        self._attached.check_integrity()

    async def _hold(self, card: str, host: AdapterHost, file: Path, key: str, move: Move) -> AdapterInfo:
        at = _at(card, key)
        while not self._attached.retain(at):
            if (other := self._coming.get(at)) is not None:
                await other.wait()
                continue
            done = self._coming[at] = asyncio.Event()
            try:
                await self._attach(at, host, file, key, move)
                break
            finally:
                del self._coming[at]
                done.set()
        return self._infos[at]

    async def _attach(self, at: str, host: AdapterHost, file: Path, key: str, move: Move) -> None:
        try:
            read: Adapter = await asyncio.get_running_loop().run_in_executor(self._executor, host.read, file)
        except BadAdapter as problem:
            raise BadAdapter(f"adapter '{file.stem}': {problem}") from problem
        self._attached.put(at, read, read.nbytes)
        self._infos[at] = AdapterInfo(file.stem, key, read.rank, read.nbytes)
        dropped, self._dropped = self._dropped, []
        for card, old in dropped:
            if card == at.partition(" ")[0]:
                await move(MoveAdapter(old, None))
        try:
            await move(MoveAdapter(key, read))
        except BaseException:
            self._attached.release(at)
            raise

    async def _key(self, file: Path) -> str:
        known = self._keys.get(file)
        self._keys[file] = await asyncio.get_running_loop().run_in_executor(self._executor, _digest, file, known)
        return self._keys[file][1]

    def _names(self) -> tuple[str, ...]:
        if self._folder is None:
            return ()
        return tuple(sorted(path.stem for path in self._folder.glob(f"*{SUFFIX}")))

    def _drop(self, at: str) -> None:
        card, _, key = at.partition(" ")
        self._infos.pop(at, None)
        self._dropped.append((card, key))


def keys_in(folder: Path) -> frozenset[str]:
    """Keys of the files of a folder. Blocking."""
    return frozenset(_digest(file, None)[1] for file in folder.glob(f"*{SUFFIX}"))


def _at(card: str, key: str) -> str:
    return f"{card} {key}"


def _digest(file: Path, known: Known | None) -> Known:
    """Read again only where the file is another one than it was."""
    stat = file.stat()
    seen = stat.st_mtime_ns, stat.st_size
    if known is not None and known[0] == seen:
        return known
    with file.open("rb") as opened:
        return seen, hashlib.file_digest(opened, "sha256").hexdigest()
