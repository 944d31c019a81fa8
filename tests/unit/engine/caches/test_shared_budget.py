"""One budget of bytes for all workers of a server, however many they are."""

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from worldroom.engine.caches.ledger import ByteLedger
from worldroom.engine.caches.parts import WorldPart, part_of
from worldroom.engine.caches.store import SnapshotFolder
from worldroom.engine.caches.tier import StoreFull
from worldroom.engine.spec import EngineSpec
from worldroom.engine.worker.spec import WorkerSpec, store_of

BUDGET = (60_000, 90_000)
"""Bytes of memory and of disk."""


def parts(*data: bytes) -> dict[WorldPart, bytes | None]:
    return {part_of(one): one for one in data}


def held(root: Path) -> int:
    """Bytes of all worlds below, a file with several names in a folder once."""
    folders = [path for path in root.glob("**/*") if path.is_dir() and len(path.name) == 32]
    return sum(sum({f.stat().st_ino: f.stat().st_size for f in folder.iterdir()}.values()) for folder in folders)


def server(tmp_path: Path, workers: int) -> list[SnapshotFolder]:
    """A folder in memory for each, one on the disk for all."""
    return [
        SnapshotFolder(tmp_path / "memory" / str(n), tmp_path / "disk", *BUDGET, tmp_path / "ledgers")
        for n in range(workers)
    ]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_what_all_workers_keep_stays_within_the_budget_and_is_counted_exactly(workers: int, tmp_path: Path) -> None:
    dice, stores, refused = random.Random(workers), server(tmp_path, workers), 0
    homes = {f"s{number}": stores[number % workers] for number in range(12)}
    for number in range(1, 600):
        session = dice.choice(sorted(homes))
        store = homes[session]
        try:
            match dice.choice(("put", "put", "put", "persist", "forget", "lend", "aside", "retire", "move")):
                case "put":
                    store.put(session, b"body", number, parts(*(dice.randbytes(2000) for _ in range(3))))
                case "persist":
                    store.persist(session)
                case "forget":
                    store.forget(session)
                case "lend":
                    store.lend(session, [other for other in homes if homes[other] is store and other != session][:1])
                case "aside":
                    store.set_aside(session)
                case "retire":
                    store.retire(session)
                case "move":
                    homes[session] = dice.choice(stores)
                    if homes[session] is not store:
                        store.hand_over(session, homes[session])
        except StoreFull:
            refused += 1
        in_memory, on_disk = stores[0].bytes_used
        assert all(other.bytes_used == (in_memory, on_disk) for other in stores)
        assert (in_memory, on_disk) == (held(tmp_path / "memory"), held(tmp_path / "disk")), number
    assert refused > 10, "the budget was met"


def test_a_worker_alone_may_have_all_of_it_and_two_no_more_than_one(tmp_path: Path) -> None:
    one, other = server(tmp_path, 2)
    one.put("a", b"", 1, parts(b"x" * 50_000))
    other.put("b", b"", 1, parts(b"y" * 40_000))
    assert held(tmp_path / "memory") < 60_000 < held(tmp_path / "memory") + held(tmp_path / "disk")
    with pytest.raises(StoreFull, match="of 90000 are used"):
        one.put("c", b"", 1, parts(b"z" * 60_000))
    other.forget("b")
    one.put("c", b"", 1, parts(b"z" * 60_000))


def test_workers_that_write_at_once_never_go_beyond(tmp_path: Path) -> None:
    stores = server(tmp_path, 4)

    def fill(number: int) -> int:
        written = 0
        for world in range(40):
            try:
                stores[number].put(f"w{number} {world}", b"", 1, parts(bytes([number, world]) * 1000))
                written += 1
            except StoreFull:
                pass
        return written

    with ThreadPoolExecutor(4) as pool:
        written = sum(pool.map(fill, range(4)))
    assert 40 < written < 160
    assert held(tmp_path / "memory") <= 60_000 + 160 * 150 and held(tmp_path / "disk") <= 90_000
    assert stores[0].bytes_used == (held(tmp_path / "memory"), held(tmp_path / "disk"))


def test_processes_take_bytes_one_after_the_other(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from worldroom.engine.caches.ledger import ByteLedger;"
        "ledger = ByteLedger(Path(sys.argv[1]), lambda: 7);"
        "print(sum(ledger.take(3, 3007) for _ in range(500)))"
    )
    file = tmp_path / "ledgers" / "memory.bytes"
    running = [subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE) for _ in range(3)]
    taken = [int(process.communicate()[0]) for process in running]
    assert sum(taken) == 1000 and ByteLedger(file, lambda: 0).used == 3007


def test_the_edge_and_its_worker_count_in_one_place(tmp_path: Path) -> None:
    spec = EngineSpec(worlds_memory=5000, worlds_disk=5000)
    serving = [WorkerSpec(("toy",), None, spec, tmp_path / "disk", ledgers=tmp_path / "ledgers") for _ in range(2)]
    boots = [each.boot(tmp_path / str(number)) for number, each in enumerate(serving)]
    edge, worker, other = store_of(boots[0]), store_of(boots[0]), store_of(boots[1])
    worker.put("a", b"", 1, parts(b"x" * 3000))
    assert edge.lend("a", ["b"]) == 1
    assert edge.bytes_used == worker.bytes_used == other.bytes_used and edge.bytes_used[0] > 6000
    other.put("c", b"", 1, parts(b"y" * 3000))
    assert other.bytes_used[1] == 3000, "memory is full of another worker's worlds"
