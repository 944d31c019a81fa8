"""Cards that do not fit a device together take turns on it, in virtual time, on simulated devices of a GPU's size."""

import asyncio
import random
from pathlib import Path

import pytest
from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.engine.caches.slab_pool import SlabPool
from worldroom.engine.caches.weights_io import ReadWeights, WriteWeights
from worldroom.engine.device.device import Batch
from worldroom.engine.engine import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.engine.weights.away import SLICE, WeightsAway, put_away
from worldroom.engine.weights.turns import CardTurn, CardTurns
from worldroom.models.contract.cache import CacheSpec
from worldroom.models.contract.loop import StepKind
from worldroom.models.devices import DATA_SHEETS, DataSheet
from worldroom.models.holding import GB, ROWS, CardBytes
from worldroom.simulation.device import SimulatedDevice
from worldroom.simulation.encoder import BlankEncoder
from worldroom.simulation.prices import FILL, LINK, cost_by
from worldroom.simulation.roofline import computed
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, until
from worldroom.tests.sim.test_devices import PUBLISHED

L40S = DATA_SHEETS["l40s"]
LONGLIVE, ANYFLOW, MATRIX = "longlive-1.3b", "anyflow-far-1.3b", "matrix-game-2-universal"


class Scene:
    """An engine of several cards on one simulated device, `fast` times as fast as its sheet says. `crossed`: bytes that
    went to it or from it. `longest`: seconds of the longest step in which cards moved.
    """

    def __init__(self, sheet: DataSheet, *cards: str, fast: float = 4.0, spec: EngineSpec | None = None) -> None:
        prices = {name: computed(name, sheet) for name in cards}
        real = cost_by(prices)
        self.crossed = self.longest = 0.0

        def cost(batch: Batch) -> float:
            seconds = real(batch)
            if batch.kind is StepKind.WEIGHTS_IO:
                self.longest = max(self.longest, seconds)
                crosses = all(isinstance(row, ReadWeights | WriteWeights) for row in batch.rows)
                self.crossed += seconds * LINK if crosses else 0.0
                return seconds
            return seconds / fast

        self.device = SimulatedDevice(cost, sheet.name, total=sheet.memory_gb * GB)
        self.away = WeightsAway(1 << 50, Path())
        loaded = tuple(price.loaded() for price in prices.values())
        for number, price in enumerate(prices.values()):
            if number:
                put_away(loaded[number - 1], self.away, self.device.claim)
            self.device.load(price.bytes.weights)
        clock = LoopClock(asyncio.get_running_loop())
        self.engine = Engine(loaded, clock, spec or EngineSpec(), self.device, BlankEncoder, away=self.away)

    def capacity(self, card: str) -> api.Capacity:
        return next(entry for entry in self.engine.capacity() if entry.card == card)

    def check(self) -> None:
        """The sum of pools is no more than the device, and is what the device holds."""
        pools = [pool for entry in self.engine.capacity() for pool in entry.pools if not pool.host]
        assert sum(pool.limit for pool in pools) <= self.device.total
        weights = sum(pool.used for pool in pools if pool.name.startswith("weights"))
        assert weights >= self.device.weights, "what is on its way counts as there"
        self.engine.check_integrity()


async def enters(scene: Scene, person: Person, card: str, within: float = 60.0) -> float:
    """Ask at the door, with a name for the line, until let in; seconds it took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while loop.time() < began + within:
        answer = await person.open(card, line=person.session)
        scene.check()
        if isinstance(answer, api.Opened):
            return loop.time() - began
        assert answer.figures is not None, answer
        await asyncio.sleep(answer.retry_after_s)
    raise AssertionError(f"{card} did not come within {within} s: {answer}")


async def leaves(scene: Scene, person: Person) -> None:
    scene.engine.post(api.Close(person.session))
    await until(lambda: not any(info.session == person.session for info in scene.engine.sessions()))


def test_a_card_nobody_lives_in_gives_way_to_one_somebody_waits_for_and_comes_back() -> None:
    async def day() -> None:
        scene = Scene(L40S, LONGLIVE, ANYFLOW)
        await scene.engine.start()
        scene.check()
        assert scene.capacity(LONGLIVE).on_device and not scene.capacity(ANYFLOW).on_device
        assert scene.capacity(ANYFLOW).sessions_max >= 1, "it would be served once its turn came"
        first, other = Person(scene.engine, "first"), Person(scene.engine, "other")
        crossed = scene.crossed
        took = await enters(scene, other, ANYFLOW)
        assert scene.capacity(ANYFLOW).on_device and not scene.capacity(LONGLIVE).on_device
        weights = PUBLISHED[ANYFLOW][1].weight_bytes
        assert scene.crossed - crossed < 2.2 * weights, "once to the host, once from there"
        assert took < 5 * weights / LINK + 1.0
        await leaves(scene, other)
        crossed = scene.crossed
        await enters(scene, first, LONGLIVE)
        assert scene.capacity(LONGLIVE).on_device
        assert scene.crossed - crossed <= PUBLISHED[LONGLIVE][1].weight_bytes, "what left before is not copied again"
        await asyncio.sleep(5.0)
        assert len(first.done) > 3 and not first.faults
        await leaves(scene, first)
        await scene.engine.close()

    run(day())


def test_a_card_that_is_lived_in_stays_and_nobody_new_comes_before_who_waits_for_another() -> None:
    async def day() -> None:
        scene = Scene(L40S, LONGLIVE, ANYFLOW)
        await scene.engine.start()
        lives, waits, late = (Person(scene.engine, name) for name in ("lives", "waits", "late"))
        await enters(scene, lives, LONGLIVE)
        answer = await waits.open(ANYFLOW, line="waits")
        assert isinstance(answer, api.Refused) and answer.queue_place == 1
        assert scene.capacity(ANYFLOW).in_the_way == (LONGLIVE,)
        background = {"latency_class": api.LatencyClass.BACKGROUND}
        behind = await late.open(LONGLIVE, line="late", **background)
        assert isinstance(behind, api.Refused) and behind.queue_place == 2
        assert f"turn of card '{ANYFLOW}'" in behind.detail
        waiting = asyncio.create_task(enters(scene, waits, ANYFLOW))
        await asyncio.sleep(1.0)
        assert scene.capacity(LONGLIVE).on_device and not waiting.done()
        await leaves(scene, lives)
        await waiting
        await leaves(scene, waits)
        await enters(scene, late, LONGLIVE)
        await scene.engine.close()

    run(day())


def test_a_world_that_sleeps_gives_its_card_away_and_takes_it_back() -> None:
    async def day() -> None:
        scene = Scene(L40S, LONGLIVE, ANYFLOW, spec=EngineSpec(suspend_after=1.0))
        await scene.engine.start()
        sleeper, other = Person(scene.engine, "sleeper"), Person(scene.engine, "other")
        await enters(scene, sleeper, LONGLIVE)
        await asyncio.sleep(5.0)
        scene.engine.post(api.Pause("sleeper"))
        await asyncio.sleep(5.0)
        await enters(scene, other, ANYFLOW)
        await asyncio.sleep(6.0)
        scene.engine.post(api.Resume("sleeper"))
        await asyncio.sleep(2.0)
        made = len(sleeper.done)
        assert scene.capacity(ANYFLOW).on_device, "somebody lives there"
        await leaves(scene, other)
        await asyncio.sleep(10.0)
        assert len(sleeper.done) > made + 3 and not sleeper.faults
        assert [done.chunk for _, done in sleeper.done] == list(range(len(sleeper.done)))
        await scene.engine.close()

    run(day())


def test_of_three_cards_the_one_used_longest_ago_goes_and_what_has_room_stays() -> None:
    """The transformer leaves first: encoders and decoders stay as long as nobody needs their bytes."""

    async def day() -> None:
        scene = Scene(L40S, LONGLIVE, ANYFLOW, MATRIX, spec=EngineSpec(slots=1))
        await scene.engine.start()
        await enters(scene, Person(scene.engine, "a"), ANYFLOW)
        await enters(scene, Person(scene.engine, "m"), MATRIX)
        assert scene.capacity(ANYFLOW).on_device and scene.capacity(MATRIX).on_device
        assert not scene.capacity(LONGLIVE).on_device
        left = {pool.name: pool.used for pool in scene.capacity(LONGLIVE).pools if pool.name.startswith("weights/")}
        assert left["weights/transformer"] == 0 and left["weights/text"] > 0, left
        await scene.engine.close()

    run(day())


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_nobody_is_late_because_a_card_is_loaded(seed: int) -> None:
    """The same people with and without others who make two cards take turns beside them: as many late chunks, and no
    step of a turn is longer than one entry of a slot takes.
    """
    slow = DATA_SHEETS["h100"]

    async def day(turns: bool) -> tuple[int, int, float, float]:
        scene = Scene(slow, MATRIX, LONGLIVE, "krea-realtime-14b", fast=4.0, spec=EngineSpec(slots=3))
        await scene.engine.start()
        dice = random.Random(seed)
        people = [Person(scene.engine, f"p{number}") for number in range(2)]
        for person in people:
            await enters(scene, person, MATRIX)
            await asyncio.sleep(dice.random())
        for number in range(6 if turns else 0):
            guest = Person(scene.engine, f"g{number}", answers=False)
            await enters(scene, guest, (LONGLIVE, "krea-realtime-14b")[number % 2], within=120.0)
            await asyncio.sleep(1.0 + dice.random())
            await leaves(scene, guest)
        await asyncio.sleep(max(0.0, 120.0 - asyncio.get_running_loop().time()))
        done = [chunk for person in people for _, chunk in person.done]
        crossed, longest = scene.crossed, scene.longest
        await scene.engine.close()
        return sum(chunk.late for chunk in done), len(done), crossed, longest

    late, chunks, moved, longest = run(day(True))
    late_alone, chunks_alone, _, _ = run(day(False))
    print(f"\nlate {late} of {chunks}, {moved / 1e9:.0f} GB moved beside them; without, {late_alone} of {chunks_alone}")
    print(f"longest step of a turn {longest * 1000:.1f} ms")
    entries = [card.cache.bytes_per_entry for card, _ in PUBLISHED.values() if card.cache is not None]
    assert longest in [entry / FILL for entry in entries], "of whole cards it would be four times as long"
    assert moved > 100e9 and chunks > 400
    assert late <= late_alone


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 12))])
def test_the_device_is_never_overfilled_whoever_comes_and_goes(seed: int) -> None:
    """The simulated device raises as a GPU does when weights and slots do not fit; the pools tell the same."""

    async def day() -> None:
        dice = random.Random(seed)
        sheet = DATA_SHEETS[("l40s", "h100", "h200")[seed % 3]]
        most = {"l40s": 48, "h100": 80, "h200": 141}[sheet.name]
        fitting = [n for n, (_, footprint) in PUBLISHED.items() if footprint.weight_bytes < 0.6 * most * GB]
        names = dice.sample(fitting, 3)
        try:
            scene = Scene(sheet, *names, fast=20.0, spec=EngineSpec(slots=dice.randrange(1, 6), suspend_after=2.0))
        except ValueError:
            return
        await scene.engine.start()
        inside: dict[str, Person] = {}
        for number in range(40):
            match dice.choice(("open", "open", "open", "close", "pause", "resume")):
                case "open":
                    person = Person(scene.engine, f"s{number}")
                    answer = await person.open(dice.choice(names), line=person.session)
                    if isinstance(answer, api.Opened):
                        inside[person.session] = person
                case "close" if inside:
                    gone = dice.choice(sorted(inside))
                    scene.engine.post(api.Close(gone))
                    del inside[gone]
                case "pause" if inside:
                    scene.engine.post(api.Pause(dice.choice(sorted(inside))))
                case "resume" if inside:
                    scene.engine.post(api.Resume(dice.choice(sorted(inside))))
            await asyncio.sleep(dice.choice((0.0, 0.5, 3.0)))
            scene.check()
        assert not any(fault for person in inside.values() for fault in person.faults)
        await scene.engine.close()

    run(day())


def drawn(dice: random.Random, total: int) -> list[CardTurn]:
    cards = []
    for number in range(dice.randrange(2, 5)):
        parts = {name: dice.randrange(1, total // 3) for name in ("transformer", "vae", "text")[: dice.randrange(1, 4)]}
        card = CardBytes(f"c{number}", sum(parts.values()), dice.randrange(total // 20), dice.randrange(1, total // 10))
        there = set() if dice.random() < 0.5 else {*parts}
        cards.append(CardTurn(card, parts, 0, dice.randrange(1, 9), there))
    return cards


@pytest.mark.parametrize("sequences", [2000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_sequences_of_turns_stay_within_the_device(sequences: int) -> None:
    """Whoever wants a card, comes, leaves or sleeps: what is there fits, what is lived in stays, and who waits alone
    comes.
    """
    dice, woken, refused = random.Random(11), 0, 0
    for _ in range(sequences):
        total = dice.choice((24, 48, 80, 141)) * 1000
        cards = drawn(dice, total)
        turns = CardTurns(cards, total, ROWS)
        if any(turns.turn_of(card.name, ()) is None for card in cards):
            continue
        pools = {card.name: SlabPool(CacheSpec(2, 0, carry_bytes=card.bytes.session), 0) for card in cards}
        taken = []
        for _ in range(10):
            name = dice.choice(cards).name
            card, pool = turns.cards[name], pools[name]
            lived_in = [other for other, its in pools.items() if its.taken]
            if not card.awake:
                turn = turns.turn_of(name, lived_in)
                assert (turn is None) == bool(turns.in_the_way(name, lived_in))
                if turn is None:
                    refused += 1
                    left = set(lived_in) - set(turns.in_the_way(name, lived_in))
                    assert turns.turn_of(name, left) is not None, "without those in its way it could come"
                else:
                    for leave in turn.leaving:
                        assert leave.card not in lived_in
                        pools[leave.card].resize(0)
                        turns.left(leave)
                    card.there, card.slots = {*card.components}, turn.slots
                    pool.resize(turn.slots)
                    turns.touch(name)
                    woken += 1
                    assert turns.used <= total
            if card.awake and pool.taken < pool.slots and dice.random() < 0.7:
                taken.append((pool, pool.acquire()))
            elif taken:
                left_pool, slot = taken.pop(dice.randrange(len(taken)))
                left_pool.free(slot)
            sessions = sum(its.bytes_used for its in pools.values())
            assert sum(one.weights for one in turns.cards.values()) + sessions <= total or not woken
    print(f"\n{woken} cards came to a device, {refused} times others were in the way")
    assert woken > 2 * sequences and refused > sequences / 10
    assert SLICE / LINK < 0.001, "a slice is shorter than what a chunk allows for steps of others"
