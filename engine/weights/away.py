"""Weights that left the device: in host memory within a budget, the rest in files that end with this process. Blocking.

    device <-- slices --> host memory (pinned, bytes_max) --least recently used--> a file without a name on the disk

A copy stays after its weights are back on the device, as long as there is room: they do not change, so the next time
they leave nothing is copied. What comes from a file is checked by its sum.
"""

import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path

from ...models.contract.components import HostBytes
from ...models.contract.loaded import LoadedCard
from ..caches.weights_io import DropComponent, ReadWeights, WeightsRow

SLICE = 8 << 20
"""Bytes that cross in one step: half a millisecond of a GPU's link, a few of a CPU's memory."""


class WeightsLost(RuntimeError):
    """A file has not what was written to it."""


@dataclass(slots=True)
class _Copy:
    slices: list[HostBytes] | None
    """None: in the file alone."""
    size: int
    buffer: Callable[[int], HostBytes]
    file: BufferedRandom | None = None
    sums: tuple[int, ...] = ()
    spare: bool = False
    """The weights are on the device again: it may be forgotten."""


class WeightsAway:
    """`bytes_max`: of host memory. `folder`: of the files. May be used from several threads."""

    def __init__(self, bytes_max: int, folder: Path) -> None:
        self.bytes_max, self._folder = bytes_max, folder
        self._copies: dict[tuple[str, str], _Copy] = {}
        self._lock = threading.Lock()

    @property
    def bytes_used(self) -> int:
        """Of host memory."""
        return sum(copy.size for copy in [*self._copies.values()] if copy.slices is not None)

    @property
    def bytes_on_disk(self) -> int:
        return sum(copy.size for copy in [*self._copies.values()] if copy.file is not None)

    def has(self, loaded: LoadedCard, component: str) -> bool:
        return (loaded.card.name, component) in self._copies

    def put(self, loaded: LoadedCard, component: str, slices: list[HostBytes]) -> None:
        """Keep a component's bytes, in slices as they were read. Raises OSError where neither memory nor disk holds
        them.
        """
        assert loaded.components is not None, "it was read"
        copy = _Copy(slices, sum(map(len, slices)), loaded.components.buffer)
        with self._lock:
            self._copies[loaded.card.name, component] = copy
            try:
                self._make_room()
            except OSError:
                del self._copies[loaded.card.name, component]
                raise

    def in_memory(self, loaded: LoadedCard, component: str) -> bool:
        return self._copies[loaded.card.name, component].slices is not None

    def went(self, loaded: LoadedCard, component: str, back: bool) -> None:
        """Its weights are on the device again, or have left it."""
        self._copies[loaded.card.name, component].spare = back

    def slices(self, loaded: LoadedCard, component: str) -> Iterator[tuple[int, HostBytes]]:
        """Start and bytes of each slice, in order. Raises `WeightsLost` or OSError."""
        at = loaded.card.name, component
        with self._lock:
            copy = self._copies[at] = self._copies.pop(at)
        if copy.slices is None:
            yield from _read(copy, f"'{component}' of card '{loaded.card.name}'")
            return
        start = 0
        for data in copy.slices:
            yield start, data
            start += len(data)

    def close(self) -> None:
        with self._lock:
            for copy in self._copies.values():
                if copy.file is not None:
                    copy.file.close()
            self._copies.clear()

    def _make_room(self) -> None:
        """Until host memory is within its budget: the copy that was used longest ago goes to the disk, if it is not
        there already; one that nobody needs is forgotten first.
        """
        for at, copy in sorted(self._copies.items(), key=lambda item: not item[1].spare):
            if self.bytes_used <= self.bytes_max:
                return
            if copy.slices is None:
                continue
            if copy.file is None and copy.spare:
                del self._copies[at]
                continue
            if copy.file is None:
                _write(copy, self._folder)
            copy.slices = None


def _write(copy: _Copy, folder: Path) -> None:
    assert copy.slices is not None
    folder.mkdir(parents=True, exist_ok=True)
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it lives as long as the copy
    try:
        for data in copy.slices:
            file.write(data.data)
        file.flush()
    except OSError:
        file.close()
        raise
    copy.file, copy.sums = file, tuple(zlib.crc32(data.data) for data in copy.slices)


def _read(copy: _Copy, what: str) -> Iterator[tuple[int, HostBytes]]:
    file, start = copy.file, 0
    assert file is not None, "a copy is in memory or in a file"
    for known in copy.sums:
        data = copy.buffer(min(SLICE, copy.size - start))
        file.seek(start)
        if file.readinto(data.data) != len(data) or zlib.crc32(data.data) != known:
            raise WeightsLost(f"{what} is not on the disk as it was written, from byte {start} on")
        yield start, data
        start += len(data)


def cut(loaded: LoadedCard, component: str) -> list[ReadWeights]:
    """The steps that read a component into host memory."""
    assert loaded.components is not None, "it has components"
    size, buffer = loaded.components.sizes[component], loaded.components.buffer
    return [ReadWeights(component, start, buffer(min(SLICE, size - start))) for start in range(0, size, SLICE)]


def put_away(loaded: LoadedCard, away: WeightsAway, move: Callable[[LoadedCard, WeightsRow], None]) -> None:
    """Take all components of a card off the device, before anything runs there. Blocking."""
    for component in () if loaded.components is None else loaded.components.sizes:
        rows = cut(loaded, component)
        for row in rows:
            move(loaded, row)
        away.put(loaded, component, [row.into for row in rows])
        move(loaded, DropComponent(component))
