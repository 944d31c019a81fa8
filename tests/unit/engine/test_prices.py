"""Prices kept on disk: a second start measures little and admits at the same figures; what is unsound is ignored."""

import asyncio
import logging
from pathlib import Path

import msgspec
import pytest
from worldroom.engine.cost_store import CostStore, PriceSheet, subject
from worldroom.engine.engine import Engine
from worldroom.engine.scheduling.costs import Estimate
from worldroom.engine.spec import EngineSpec
from worldroom.simulation.virtual_time import run
from worldroom.tests import fake_engine
from worldroom.tests.fake_engine import FakeDevice, Person, steady, toy

SPEC = EngineSpec(slots=4, max_rows=4)


async def started(folder: Path, seconds: float = 0.002, per_chunk: int = 1) -> tuple[Engine, FakeDevice]:
    cards = (toy(per_chunk=per_chunk),)
    return await fake_engine.started(steady(seconds), cards, SPEC, prices=CostStore(folder))


def sheets(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_the_next_start_measures_little_and_knows_the_same_prices(tmp_path: Path) -> None:
    async def scene() -> None:
        first, measured = await started(tmp_path)
        prices = first.capacity()[0].price_us, first.capacity()[0].sessions_max
        await first.close()
        second, touched = await started(tmp_path)
        assert (second.capacity()[0].price_us, second.capacity()[0].sessions_max) == prices
        assert len(touched.ran) < len(measured.ran) / 2
        once = {(kind, rows) for kind, rows in measured.ran}
        assert {(kind, rows) for kind, rows in touched.ran} == once, "everything is run once before a session comes"
        for key, rows, estimate in first.services.costs.of_card("toy"):
            assert second.services.costs.price(key, rows) == pytest.approx(estimate.conservative)
        await second.close()

    run(scene())


def test_what_sessions_teach_is_kept_too(tmp_path: Path) -> None:
    async def scene() -> None:
        engine, device = await started(tmp_path, 0.002)
        device.cost = steady(0.003)
        driver = Person(engine, "a")
        await driver.open()
        await asyncio.sleep(40)
        (path,) = sheets(tmp_path)
        sheet = msgspec.json.decode(path.read_bytes(), type=PriceSheet)
        assert set(next(chunk for chunk in sheet.chunks if chunk.steps == 2).took_us) == {12000}
        await engine.close()

    run(scene())


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: data[: len(data) // 2], "truncated"),
        (lambda data: b"\0" * len(data), "malformed"),
        (lambda data: data.replace(b'"format":3', b'"format":7'), "it has format 7, this version reads 3"),
        (lambda data: data.replace(b'"of":"card=toy@1', b'"of":"card=toy@9'), "it holds prices of 'card=toy@9"),
        (lambda data: data.replace(b'"rows":1', b'"rows":0'), "Expected `int` >= 1"),
        (lambda data: data.replace(b'"took_us":[', b'"took_us":[-5,'), "Expected"),
        (lambda data: data + b" " * (1 << 20), "more than 1048576 bytes"),
    ],
)
def test_a_damaged_or_foreign_file_is_ignored_with_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: object, why: str
) -> None:
    async def scene() -> None:
        first, measured = await started(tmp_path)
        await first.close()
        (path,) = sheets(tmp_path)
        path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
        with caplog.at_level(logging.WARNING):
            second, again = await started(tmp_path)
        (line,) = [record.getMessage() for record in caplog.records]
        assert "are ignored" in line
        assert why in line
        assert len(again.ran) == len(measured.ran)
        await second.close()
        assert msgspec.json.decode(path.read_bytes(), type=PriceSheet).format == 3, "and it is written anew"

    run(scene())


def test_prices_of_a_machine_that_has_become_slower_are_measured_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        first, _ = await started(tmp_path, 0.002)
        await first.close()
        with caplog.at_level(logging.WARNING):
            second, _ = await started(tmp_path, 0.020)
        assert "a chunk took 0.0080 s, now it takes 0.0800 s" in caplog.text
        assert second.capacity()[0].price_us == 80_000
        await second.close()

    run(scene())


def test_another_length_of_chunks_has_a_sheet_of_its_own(tmp_path: Path) -> None:
    async def scene() -> None:
        for per_chunk in (1, 4):
            engine, _ = await started(tmp_path, per_chunk=per_chunk)
            await engine.close()
        assert len(sheets(tmp_path)) == 2

    run(scene())


def test_a_folder_that_takes_no_file_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        taken = tmp_path / "prices"
        taken.write_text("a file where the folder should be")
        engine, _ = await started(taken)
        assert "cannot be stored" in caplog.text
        await engine.close()

    run(scene())


def test_remembered_figures_count_as_older_than_observed_ones() -> None:
    estimate = Estimate()
    estimate.observe(0.030)
    estimate.remember([0.010, 0.020])
    assert estimate.recent == (0.010, 0.020, 0.030)
    assert estimate.mean == pytest.approx(0.010 + 0.1 * 0.010 + 0.1 * (0.030 - 0.011))


def test_the_subject_names_card_precision_and_machine() -> None:
    async def scene() -> None:
        engine, _ = await started(Path("/nonexistent"))
        of = subject(engine.runtimes["toy"], "cpu")
        assert of.startswith("card=toy@1 weights=none precision=int plan=toy-1 exact shape=((1, 96, 160),) layout=rgb ")
        await engine.close()

    run(scene())
