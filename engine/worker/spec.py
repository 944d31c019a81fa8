"""What one worker serves, and the folder in which its edge keeps the checkpoints of its worlds."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...models.contract.recipe import RuntimeChoice
from ..caches.store import SnapshotFolder
from ..spec import EngineSpec
from .devices import WorkerDevice, default_device
from .ipc import Boot

MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What one worker serves. `disk`: a folder for worlds: those that memory does not hold, sleepers, and what a
    restart goes on from; nobody else writes there.

    `checkpoints`: folders of published weights by card, of those that have none of their own. `prices`: where what
    steps cost is kept from one start to the next, None = nowhere. `spare_after`: seconds of service after which a
    second process is started that loads the program and no card, to take over when the worker ends; None = none.
    `options`: by card, of its family, packed. `adapters`: a folder of low-rank weights that worlds may have. `ledgers`:
    where workers that share a budget of worlds count; None = this one is alone.
    """

    cards: tuple[str, ...]
    choice: RuntimeChoice | None
    spec: EngineSpec
    disk: Path | None = None
    checkpoints: Mapping[str, Path] = field(default_factory=dict)
    prices: Path | None = None
    spare_after: float | None = None
    options: Mapping[str, bytes] = field(default_factory=dict)
    device: WorkerDevice = field(default_factory=default_device)
    adapters: Path | None = None
    ledgers: Path | None = None

    def boot(self, folder: Path) -> Boot:
        """The worker's first message; `folder` is the edge's own."""
        disk, prices, adapters = (str(place or "") for place in (self.disk, self.prices, self.adapters))
        checkpoints = {card: str(place) for card, place in self.checkpoints.items()}
        more = dict(self.options), self.device, adapters
        ledgers = str(self.ledgers or folder)
        return Boot(self.cards, self.choice, self.spec, str(folder), disk, ledgers, checkpoints, prices, *more)


def store_of(boot: Boot) -> SnapshotFolder:
    """Where the worlds of one edge are written down."""
    spec, disk = boot.spec, Path(boot.disk) if boot.disk else None
    return SnapshotFolder(Path(boot.folder), disk, spec.worlds_memory, spec.worlds_disk, Path(boot.ledgers))


def fresh_folder() -> Path:
    """A folder for checkpoints, in memory where that is; those of edges that were killed are removed."""
    place = MEMORY if MEMORY.is_dir() else Path(tempfile.gettempdir())
    for left in place.glob("worldroom-edge-*"):
        owner = left.name.split("-")[2]
        if owner.isdigit() and not _lives(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"worldroom-edge-{os.getpid()}-", dir=place))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
