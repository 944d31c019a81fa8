"""Published cards on devices of a GPU's size, through the real admission: as many as docs/CAPACITY.md says."""

import asyncio
import contextlib
import random
from dataclasses import replace
from pathlib import Path

import pytest
from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.engine.caches.feature_cache import FeatureCache
from worldroom.engine.caches.slab_pool import PoolFull, SlabPool
from worldroom.engine.engine import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.models import capacity
from worldroom.models.contract.cache import CacheSpec
from worldroom.models.contract.card import ModelCard
from worldroom.models.contract.footprint import Footprint
from worldroom.models.devices import DATA_SHEETS, DataSheet
from worldroom.models.holding import GB, ROWS, CardBytes, DoesNotFit, card_bytes, check, empty, most, slots
from worldroom.simulation.device import SimulatedDevice
from worldroom.simulation.encoder import BlankEncoder
from worldroom.simulation.prices import CardPrices
from worldroom.simulation.roofline import computed
from worldroom.simulation.virtual_time import run

PUBLISHED = {card.name: (card, footprint) for card, footprint in capacity.accounts()}
SIZES = {"24": "rtx4090", "48": "l40s", "80": "h100", "141": "h200"}


def quick(prices: CardPrices) -> CardPrices:
    """Steps that take no time to speak of, so that memory alone decides."""
    steps = {kind: replace(price, by_rows=((1, 1e-6), (4, 1e-6))) for kind, price in prices.steps.items()}
    return replace(prices, steps=steps)


def engine_on(sheet: DataSheet, *cards: str, asked: int = 64, adapters: Path | None = None, beside: int = GB) -> Engine:
    """`beside`: bytes that adapters of that folder may take."""
    loaded = tuple(quick(computed(name, sheet)).loaded() for name in cards)
    weights = sum(PUBLISHED[name][1].weight_bytes for name in cards)
    device = SimulatedDevice(lambda batch: 1e-6, sheet.name, total=sheet.memory_gb * GB, weights=weights)
    spec = EngineSpec(slots=asked, adapter_bytes_max=beside, weights_memory=1 << 50)
    clock = LoopClock(asyncio.get_running_loop())
    return Engine(loaded, clock, spec, device, BlankEncoder, adapters=adapters)


def opening(number: int, card: str, line: str = "") -> api.Open:
    return api.Open(f"s{number}", card, seed=number, latency_class=api.LatencyClass.BACKGROUND, line=line)


async def held(engine: Engine, card: str) -> tuple[int, api.Refused]:
    """How many were let in, each asking at the door with a name for the line, and the answer to the next one."""
    for number in range(100):
        answer = await engine.open(opening(number, card, f"s{number}"), lambda event: None)
        if isinstance(answer, api.Refused):
            return number, answer
    raise AssertionError("everybody was let in")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_door_lets_in_what_the_page_says(name: str, size: str) -> None:
    sheet, (card, footprint) = DATA_SHEETS[SIZES[size]], PUBLISHED[name]
    promised = capacity.holding(card, footprint, sheet).by_memory

    async def day() -> None:
        if promised == 0:
            with pytest.raises(DoesNotFit, match="not one session of"):
                engine_on(sheet, name)
            return
        engine = engine_on(sheet, name)
        await engine.start()
        count, no = await held(engine, name)
        (entry,) = engine.capacity()
        assert count == entry.sessions == promised
        assert no.figures is not None, "time alone may change it, so there is a place in line"
        assert entry.pool_bytes + footprint.weight_bytes <= sheet.memory_gb * GB
        await engine.close()

    run(day())


@pytest.mark.parametrize("seed", range(10))
def test_pools_never_hold_more_than_the_device(seed: int) -> None:
    """Cards drawn together, then a hundred steps: open, close, pause until asleep, resume."""

    async def day() -> None:
        dice, sheet = random.Random(seed), DATA_SHEETS[dice_size(seed)]
        names = dice.sample(sorted(PUBLISHED), dice.randrange(1, 3))
        try:
            engine = engine_on(sheet, *names, asked=dice.randrange(1, 20))
        except DoesNotFit:
            return
        await engine.start()
        open_now = set[str]()
        for number in range(100):
            match dice.choice(("open", "open", "close", "pause", "resume")):
                case "open":
                    answer = await engine.open(opening(number, dice.choice(names)), lambda event: None)
                    open_now |= {f"s{number}"} if isinstance(answer, api.Opened) else set()
                case "close" if open_now:
                    engine.post(api.Close(gone := dice.choice(sorted(open_now))))
                    open_now.discard(gone)
                case "pause" if open_now:
                    engine.post(api.Pause(dice.choice(sorted(open_now))))
                case "resume" if open_now:
                    engine.post(api.Resume(dice.choice(sorted(open_now))))
            await asyncio.sleep(dice.choice((0.0, 1.0, 25.0)))
            pools = engine.capacity()
            assert all(entry.pool_bytes_used <= entry.pool_bytes for entry in pools)
            named = [pool for entry in pools for pool in entry.pools if not pool.host]
            assert all(0 <= pool.used <= pool.limit for pool in named)
            assert sum(pool.limit for pool in named) <= sheet.memory_gb * GB
            engine.check_integrity()
        await engine.close()

    run(day())


@pytest.mark.parametrize("beside", [GB, 8 * GB, 16 * GB])
def test_adapters_have_their_bytes_beside_the_worlds(tmp_path: Path, beside: int) -> None:
    async def day() -> None:
        sheet, (card, footprint) = DATA_SHEETS["h100"], PUBLISHED["longlive-1.3b"]
        engine = engine_on(sheet, card.name, adapters=tmp_path, beside=beside)
        pools = [pool for entry in engine.capacity() for pool in entry.pools if not pool.host]
        assert next(pool.limit for pool in pools if pool.name == "adapters") == beside
        step = ROWS * card_bytes(card, footprint, card.recipe.default.precision).activations
        assert sum(pool.limit for pool in pools) + step <= sheet.memory_gb * GB
        await engine.close()

    run(day())


def drawn_cards(dice: random.Random, total: int) -> list[CardBytes]:
    """Up to three cards, loaded one after the other as a worker does it; one that does not fit then is left out."""
    there: list[CardBytes] = []
    for card, footprint in dice.sample([*PUBLISHED.values()], dice.randrange(1, 4)):
        free = total - sum(other.weights for other in there)
        with contextlib.suppress(DoesNotFit):
            there.append(check(card, footprint, dice.choice(card.recipe.precisions), total, free))
        assert sum(other.weights for other in there) <= total
    return there


def test_ten_thousand_sequences_of_card_load_open_close_sleep_and_adapter_stay_within_the_device() -> None:
    dice, played, attached = random.Random(7), 0, 0
    for _ in range(10_000):
        total, beside = dice.choice((24, 48, 80, 141, 180)) * GB, dice.choice((0, 1, 4, 8)) * GB
        cards, adapters = drawn_cards(dice, total), FeatureCache(64, beside)
        try:
            counts = slots(empty(total, cards).less(beside), cards, dice.randrange(1, 9)) if cards else ()
        except DoesNotFit:
            continue
        pools = [SlabPool(CacheSpec(2, 0, carry_bytes=card.session), n) for card, n in zip(cards, counts, strict=True)]
        taken: list[tuple[SlabPool, int, str]] = []
        for _ in range(10 if pools else 0):
            pool, adapter = dice.choice(pools), dice.choice(("", *"abcdef"))
            if pool.taken < pool.slots and dice.random() < 0.7:
                try:
                    if adapter:
                        adapters.put(adapter, None, ord(adapter) % 5 * GB // 2)
                except PoolFull:
                    adapter = ""  # the world begins without it
                taken.append((pool, pool.acquire(), adapter))  # opened, or awake again
                attached += adapter != ""
            elif taken:
                left, slot, adapter = taken.pop(dice.randrange(len(taken)))
                left.free(slot)  # closed, or asleep
                if adapter:
                    adapters.release(adapter)
            adapters.check_integrity()
            worlds = sum(card.weights for card in cards) + sum(pool.bytes_used for pool in pools)
            assert worlds <= 0.9 * total and worlds + adapters.bytes_used <= total
        played += bool(pools)
    assert played > 5000 and attached > 5000, "most of what was drawn could be played"


def dice_size(seed: int) -> str:
    return ("l40s", "h100", "h200")[seed % 3]


@pytest.mark.parametrize("seed", range(1000))
def test_whatever_cards_share_a_device_they_stay_within_it(seed: int) -> None:
    dice = random.Random(seed)
    drawn: list[tuple[ModelCard, Footprint]] = dice.choices([*PUBLISHED.values()], k=dice.randrange(1, 4))
    cards = [card_bytes(card, footprint, dice.choice(card.recipe.precisions)) for card, footprint in drawn]
    total, asked = dice.choice((24, 48, 80, 141, 180)) * GB, dice.randrange(1, 40)
    memory = empty(total, cards)
    try:
        counts = slots(memory, cards, asked)
    except DoesNotFit:
        assert len(cards) > 1 or most(memory, cards[0]) == 0
        return
    resident = sum(card.weights + count * card.session for card, count in zip(cards, counts, strict=True))
    assert resident <= 0.9 * total and all(1 <= count <= asked for count in counts)
