"""Time on a GPU: what a batch is said to take is what the GPU worked on it, and the event loop never waits for one."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from worldroom.clock import SystemClock
from worldroom.engine import api
from worldroom.engine.device.batch import Batch
from worldroom.engine.device.device import DeviceThread, Measured
from worldroom.engine.device.observers import BatchRecord, Observer
from worldroom.engine.device.streams import WorkStream
from worldroom.engine.spec import EngineSpec
from worldroom.models import catalog
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import StepKind
from worldroom.models.shared.components import TorchComponents
from worldroom.models.waypoint import slab
from worldroom.simulation.card import SimulatedComponents
from worldroom.simulation.virtual_time import run
from worldroom.tests.asynchronous_device import AsynchronousDevice, GpuRuntime, OnGpu, Uploads, VirtualGpu, Waited
from worldroom.tests.fake_engine import Person, engine_on, until
from worldroom.tests.sim_card import sim_card

SECONDS = {StepKind.DENOISE: 0.03, StepKind.COMMIT: 0.02, StepKind.DECODE: 0.06}
"""Of one row; another one adds half of it."""


def true_seconds(kind: StepKind, rows: int) -> float:
    return SECONDS.get(kind, 0.001) * (1 + rows) / 2


@dataclass(slots=True)
class Played:
    gpu: VirtualGpu
    prices: list[tuple[StepKind, int, float]]
    """Kind, rows and what the engine holds for their price."""
    people: list[Person]

    @property
    def worst_error(self) -> float:
        """The largest difference between a price and what the GPU needs, as a share of that."""
        return max(abs(price / true_seconds(kind, rows) - 1) for kind, rows, price in self.prices)

    @property
    def loop_waits(self) -> list[Waited]:
        return [wait for wait in self.gpu.waited if wait.by is None]


def played(
    stream: Callable[[VirtualGpu], WorkStream] | None = None, observers: tuple[Observer, ...] = (), bad: int = 0
) -> Played:
    """Two people play for a while; after some chunks `bad` rows go wrong."""
    gpu = VirtualGpu()
    runtime = GpuRuntime(gpu, true_seconds)
    loaded = replace(sim_card("far"), runtime=runtime)

    async def scene() -> Played:
        device = AsynchronousDevice(gpu, None if stream is None else stream(gpu))
        engine = engine_on(device, (loaded,), EngineSpec(slots=2, share_cap=1.0), observers=observers)
        await engine.start()
        people = [Person(engine, name, "nothing") for name in "ab"]
        for person in people:
            assert isinstance(await person.open("far"), api.Opened)
        await until(lambda: all(len(person.done) >= 3 for person in people), within=60)
        runtime.bad = bad
        await until(lambda: all(len(person.done) >= 8 for person in people), within=60)
        known = [(key.kind, rows, one.conservative) for key, rows, one in engine.services.costs.of_card("far")]
        await engine.close()
        return Played(gpu, [price for price in known if price[0] in SECONDS], people)

    return run(scene())


@dataclass(slots=True)
class ByTheThread:
    """Measures as if what a thread hands over were done when it has handed it over."""

    gpu: VirtualGpu
    began: float = 0.0

    def begin(self) -> "ByTheThread":
        return ByTheThread(self.gpu, self.gpu.now())

    def end(self) -> float:
        launched = self.gpu.now()
        event = self.gpu.event()
        event.record()
        event.synchronize()
        return launched - self.began


class OnTheLoop:
    """Looks into results where the event loop runs."""

    def see(self, batch: BatchRecord) -> None:
        for result in batch.results:
            if isinstance(result, OnGpu):
                assert bool(result.x_N.isfinite().all())


def test_prices_and_receipts_are_what_the_gpu_needs_and_the_event_loop_never_waits_for_it() -> None:
    scene = played()
    assert {kind for kind, _, _ in scene.prices} == set(SECONDS)
    assert {rows for _, rows, _ in scene.prices} == {1, 2}
    assert scene.worst_error < 0.1
    assert scene.loop_waits == []
    told = [done.timings for person in scene.people for _, done in person.done]
    alone = 2 * SECONDS[StepKind.DENOISE] + SECONDS[StepKind.COMMIT]
    assert all(0.7 * alone < one.step_us / 1e6 < 1.1 * alone for one in told)
    assert all(0.04 < one.decode_us / 1e6 < 0.065 for one in told)
    assert not any(person.faults for person in scene.people)


def test_by_the_thread_that_launches_prices_would_be_wrong() -> None:
    assert played(ByTheThread).worst_error > 0.9


def test_a_look_into_results_on_the_loop_would_be_seen_to_wait() -> None:
    assert len(played(observers=(OnTheLoop(),)).loop_waits) > 8


def test_numbers_that_are_not_finite_are_found_without_waiting_for_them() -> None:
    scene = played(bad=1)
    (fault,) = [fault for person in scene.people for fault in person.faults]
    assert fault.detail == "NotFinite: denoise of card 'far': 3 numbers are not finite" and not fault.fatal
    assert scene.loop_waits == []


ON_GPUS = [name for name in catalog.random_weights() if catalog.card(name).cache is not None]


def waits(card: str, kind: StepKind) -> list[Waited]:
    """Who waited for what two rows of a step were handed over, in a family's own code: nobody may, because that holds
    up its thread in the middle of a pass. What is made once and kept is there already.
    """
    gpu = VirtualGpu()
    loaded: LoadedCard = catalog.load(card)
    loaded.runtime.allocate(2)

    async def scene() -> list[Waited]:
        rows, views = zip(*loaded.runtime.warm_up_rows(kind, 2), strict=True)
        for _ in range(2):
            gpu.waited.clear()
            with Uploads(gpu):
                assert len(loaded.runtime.execute(kind, [gpu.moved(row) for row in rows], views)) == 2
        return gpu.waited

    return run(scene())


@pytest.mark.parametrize("card", ON_GPUS)
def test_denoising_and_committing_hand_over_all_their_work_before_anybody_waits(card: str) -> None:
    assert waits(card, StepKind.DENOISE) == []
    assert waits(card, StepKind.COMMIT) == []


def test_a_table_copied_out_of_ordinary_memory_would_be_seen_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slab, "upload", lambda host, device: host.to(device))
    assert len(waits("waypoint-tiny-random", StepKind.COMMIT)) == 8, "two tables of two pools, of each row"


def test_a_thread_takes_the_time_of_each_card_from_what_does_its_work() -> None:
    """Also of one that is loaded when the thread has long begun with others."""
    made: list[bool] = []

    def gpu_stream(own: bool) -> WorkStream:
        made.append(own)
        return WithinAMinute()

    host = sim_card("host")
    gpu = replace(host, components=SimulatedComponents({"transformer": 1}, on_gpu=True))
    thread = DeviceThread("device", SystemClock(), own=True, gpu=gpu_stream)

    def seconds(loaded: LoadedCard) -> float:
        row, view = loaded.runtime.warm_up_rows(StepKind.DENOISE, 1)[0]
        outcome = thread.submit(Batch(loaded, loaded.card.main_loop, StepKind.DENOISE, (row,), (view,))).result()
        assert isinstance(outcome, Measured), outcome
        return outcome.seconds

    assert seconds(host) < 30 and made == []
    assert seconds(gpu) == seconds(gpu) == 60 and made == [True]
    assert seconds(host) < 30
    thread.executor.shutdown()


class WithinAMinute:
    """A stream whose work takes that long, and the span of it."""

    def begin(self) -> "WithinAMinute":
        return self

    def end(self) -> float:
        return 60.0


def test_a_card_tells_where_its_work_is_done() -> None:
    assert not sim_card("host").on_gpu
    assert not TorchComponents({"part": torch.nn.Linear(2, 2)}).on_gpu
