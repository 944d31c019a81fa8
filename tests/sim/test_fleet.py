"""Several devices under one door, in virtual time: one dies, and its rooms go on on the others."""

import asyncio
import itertools
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.engine.device.batch import Batch
from worldroom.engine.spec import EngineSpec
from worldroom.engine.worker.client import WorkerClient
from worldroom.engine.worker.devices import named
from worldroom.engine.worker.pool import WorkerPool
from worldroom.engine.worker.spec import WorkerSpec
from worldroom.models.devices import H200
from worldroom.simulation.virtual_time import run
from worldroom.simulation.worker import VirtualWorker
from worldroom.tests.fake_engine import Person

CARDS = ("matrix-game-2-universal", "matrix-game-2-gta", "matrix-game-2-temple-run")
FAST = msgspec.structs.replace(
    H200,
    name="fast",
    bf16_tflops=6 * H200.bf16_tflops,
    fp32_tflops=6 * H200.fp32_tflops,
    bandwidth_gbps=6 * H200.bandwidth_gbps,
)
"""A room takes about a twentieth of it."""

SPEC = EngineSpec(slots=16, max_rows=1)
"""One row a batch, so that the sum of prices is the device's time."""


class Fleet:
    """Workers on simulated devices; `alive` are their present processes, `processes` all there were."""

    def __init__(self, sheet: Path, count: int, cards: tuple[str, ...], spec: EngineSpec) -> None:
        clock = LoopClock(asyncio.get_running_loop())
        self.alive: dict[str, VirtualWorker] = {}
        self.processes: list[VirtualWorker] = []

        def process(clock_: object, hear: object, device: object) -> VirtualWorker:
            worker = VirtualWorker(clock_, hear, device)  # type: ignore[arg-type]
            self.alive[worker.device.name] = worker
            self.processes.append(worker)
            return worker

        devices = named(",".join([f"sim:{sheet}"] * count), found=())
        self.clients = tuple(WorkerClient(WorkerSpec(cards, None, spec, device=d), clock, process) for d in devices)
        self.door = WorkerPool(self.clients)

    async def __aenter__(self) -> "Fleet":
        await self.door.start()
        return self

    async def __aexit__(self, *why: object) -> None:
        await self.door.close()

    def sound(self) -> None:
        """Nobody is above capacity, in places or in time."""
        by_device: Counter[str] = Counter()
        for entry in self.door.capacity():
            assert entry.sessions - entry.asleep <= entry.sessions_max, entry
            by_device[entry.device] += entry.share_used  # type: ignore[assignment]
        assert all(share <= 0.9 + 1e-9 for share in by_device.values()), by_device


def longest_gap(person: Person, since: float) -> float:
    """Seconds without a frame, from then on."""
    times = [since, *(at for at, _ in person.frames if at > since)]
    return max(b - a for a, b in itertools.pairwise(times))


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    path = tmp_path / "fast.json"
    path.write_bytes(msgspec.json.encode(FAST))
    return path


def test_forty_rooms_of_three_cards_go_on_when_one_of_four_devices_dies(sheet: Path) -> None:
    async def day() -> None:
        async with Fleet(sheet, 4, CARDS, SPEC) as fleet:
            people = [Person(fleet.door, f"room{number}") for number in range(40)]
            for number, person in enumerate(people):
                answer = await person.open(CARDS[number % 3])
                assert isinstance(answer, api.Opened), answer
            for _ in range(20):
                await asyncio.sleep(0.5)
                fleet.sound()
            shares = Counter(entry.device for entry in fleet.door.capacity() for _ in range(entry.sessions))
            assert sorted(shares.values()) == [10, 10, 10, 10]

            victim = fleet.clients[1]
            died = asyncio.get_running_loop().time()
            before = [len(person.done) for person in people]
            fleet.alive[victim.device.name].die()
            for _ in range(20):
                await asyncio.sleep(0.5)
                fleet.sound()
            assert victim.deaths == 1
            assert victim.ready, "and it is there again for who comes next"
            for person, count in zip(people, before, strict=True):
                chunks = [done.chunk for _, done in person.done]
                assert chunks == list(range(len(chunks))), "no chunk is lost and none is made twice"
                assert len(chunks) > count + 10
                assert not person.faults
            moved = Counter(entry.device for entry in fleet.door.capacity() for _ in range(entry.sessions))
            assert sum(moved.values()) == 40
            assert moved[victim.device.name] == 0
            used = [process for process in fleet.processes if process.loads]
            assert sorted(process.device.name for process in used) == sorted([*fleet.alive, victim.device.name])
            for process in used:
                assert sorted(process.loads) == sorted(CARDS), "each card's weights once, however many rooms came"
            gaps = [longest_gap(person, died) for person in people]
            print("longest time without a frame, s:", round(max(gaps), 2))
            assert max(gaps) < 2.0

    run(day())


def test_a_device_that_is_lost_ends_its_worker_and_nobody_hears_of_a_fault(sheet: Path) -> None:
    """An error that stays, such as an illegal memory access: its rooms go on from their checkpoints elsewhere."""

    async def day() -> None:
        async with Fleet(sheet, 2, CARDS[:1], SPEC) as fleet:
            people = [Person(fleet.door, f"room{number}") for number in range(6)]
            for person in people:
                assert isinstance(await person.open(CARDS[0]), api.Opened)
            await asyncio.sleep(5.0)
            victim, other = fleet.clients

            def lost(batch: Batch) -> None:
                raise RuntimeError("CUDA error: an illegal memory access was encountered")

            device = fleet.alive[victim.device.name].simulated
            assert device is not None
            device.fail = lost
            before = [len(person.done) for person in people]
            await asyncio.sleep(5.0)
            assert (victim.deaths, other.deaths) == (1, 0)
            for person, count in zip(people, before, strict=True):
                assert [done.chunk for _, done in person.done] == list(range(len(person.done)))
                assert len(person.done) > count + 5
                assert not person.faults
            assert victim.ready

    run(day())
