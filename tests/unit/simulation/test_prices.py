"""Prices of simulated devices: the arithmetic by hand, the line between two counts, what a measured sheet says."""

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner
from worldroom.cli.main import app
from worldroom.engine.cost_store import CostStore
from worldroom.engine.device.batch import Batch
from worldroom.engine.spec import EngineSpec
from worldroom.models import catalog
from worldroom.models.contract.loop import StepKind
from worldroom.models.devices import DATA_SHEETS, H100, H200
from worldroom.simulation.card import SimulatedRow, simulated
from worldroom.simulation.measured import BadSheet, measured
from worldroom.simulation.prices import ASSUMED_SCATTER, StepPrice, cost_by
from worldroom.simulation.roofline import LAUNCH, NothingToCount, computed
from worldroom.simulation.sheets import MEASURED, UnknownDevice, priced
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import started, steady, toy


def test_a_pass_is_as_slow_as_arithmetic_memory_or_its_launch() -> None:
    """Self-Forcing on an H100: 40.41 TFLOP at 40 % of 989 TFLOP/s; the decoder's cache is the decode's bytes."""
    prices = computed("self-forcing-1.3b", H100)
    assert prices.steps[StepKind.DENOISE].seconds(1) == pytest.approx(40.41 / (0.4 * 989), rel=1e-3)
    assert prices.steps[StepKind.DENOISE].seconds(4) == pytest.approx(4 * 40.41 / (0.4 * 989), rel=1e-3)
    assert prices.kinds == (*(StepKind.DENOISE,) * 4, StepKind.COMMIT, StepKind.DECODE)
    assert prices.chunk_price == pytest.approx(242.5 / (0.4 * 989), rel=1e-3)
    game = computed("matrix-game-2-universal", H100)
    assert game.steps[StepKind.PROMPT_ENCODE].seconds(3) == LAUNCH, "it has no network for prompts"


def test_few_tokens_are_bound_by_memory() -> None:
    """Weights are read once for all rows: 11.4 GB of text encoder at 70 % of 4.8 TB/s."""
    thin = msgspec.structs.replace(H200, bandwidth_gbps=100.0)
    price = computed("longlive-1.3b", thin).steps[StepKind.PROMPT_ENCODE]
    text = next(part for part in catalog.account("longlive-1.3b").parts if part.name == "text")  # type: ignore[union-attr]
    assert price.seconds(1) == pytest.approx(text.weight_bytes / 70e9)
    assert price.seconds(2) == price.seconds(1)


def test_every_data_sheet_names_its_source() -> None:
    assert set(DATA_SHEETS) >= {"h100", "h200", "b200", "a100", "l40s", "rtx4090", "a10g", "cpu-avx2"}
    assert all(sheet.source and sheet.memory_gb and sheet.bf16_tflops for sheet in DATA_SHEETS.values())


def test_rows_between_two_counts_lie_on_a_line_and_one_alone_shares_nothing() -> None:
    price = StepPrice(StepKind.DECODE, ((1, 0.010), (2, 0.012), (4, 0.020)))
    assert [round(price.seconds(rows), 6) for rows in (1, 2, 3, 4, 6)] == [0.010, 0.012, 0.016, 0.020, 0.028]
    assert StepPrice(StepKind.DECODE, ((1, 0.010),)).seconds(3) == pytest.approx(0.030)


def test_a_step_costs_whoever_runs_it_the_same_and_its_batch_what_the_slowest_row_does() -> None:
    prices = computed("longlive-1.3b", H200)
    loaded, cost = prices.loaded(), cost_by({"longlive-1.3b": prices})

    def batch(*rows: SimulatedRow) -> Batch:
        return Batch(loaded, "chunk_rollout", StepKind.DENOISE, rows, (None,) * len(rows))

    one, other = SimulatedRow(1, 5, 0), SimulatedRow(2, 5, 0)
    assert cost(batch(one)) == cost(batch(one)) != cost(batch(other))
    assert cost(batch(one, other)) == pytest.approx(2 * max(cost(batch(one)), cost(batch(other))))
    drawn = [prices.steps[StepKind.DENOISE].factor(SimulatedRow(n, n, 1)) for n in range(4000)]
    assert min(ASSUMED_SCATTER) <= min(drawn) and max(drawn) == 1.5
    assert sum(drawn) / len(drawn) == pytest.approx(1.0, abs=0.003)


@pytest.mark.parametrize(
    ("name", "steps", "denoise"),
    [("drive", 1, 0), ("drive", 3, 2), ("wan-t2v-1.3b", 50, 100), ("wan-t2v-1.3b", 20, 40), ("longlive-1.3b", 4, 4)],
)
def test_a_chunk_of_fewer_steps_has_fewer_passes(name: str, steps: int, denoise: int) -> None:
    """`drive` fuses one pass with the commit before it; clips pass twice for their guidance."""
    kinds = (
        (StepKind.COMMIT_DENOISE, StepKind.DECODE)
        if name == "drive"
        else (*(StepKind.DENOISE,) * (100 if name.startswith("wan") else 4), StepKind.DECODE)
    )
    card = catalog.card(name)
    loop = simulated(card, kinds).loop
    assert loop.chunk(steps).count(StepKind.DENOISE) == denoise  # type: ignore[attr-defined]
    assert loop.chunk(steps)[-1] is StepKind.DECODE  # type: ignore[attr-defined]


def test_what_a_server_measured_is_read_as_it_was_written(tmp_path: Path) -> None:
    async def warm() -> None:
        engine, _ = await started(steady(0.004), (toy(),), EngineSpec(), prices=CostStore(tmp_path))
        await engine.close()

    run(warm())
    (prices,) = measured(next(tmp_path.iterdir()), ["toy"])
    assert prices.kinds == (StepKind.DENOISE, StepKind.DENOISE, StepKind.COMMIT, StepKind.DECODE)
    assert prices.chunk_price == pytest.approx(0.016)
    assert prices.steps[StepKind.DENOISE].seconds(4) == pytest.approx(0.004), "four rows took what one did"
    assert set(prices.steps[StepKind.DENOISE].scatter) == {1.0}


def test_what_bench_model_printed_is_read(tmp_path: Path) -> None:
    """Times as it measured them, whatever this machine is busy with."""
    done = CliRunner().invoke(app, ["bench", "model", "toy", "--chunks", "3", "--rows", "1", "--rows", "2", "--json"])
    assert done.exit_code == 0, done.output
    sheet = tmp_path / "toy.json"
    sheet.write_text(done.output)
    (prices,) = measured(sheet, ["toy"])
    (model,) = json.loads(done.output)["models"]
    said = {figure["kind"]: figure for figure in model["figures"]}["decode"]
    pairs = {batch["kind"]: batch for batch in model["batches"] if batch["rows"] == 2}
    assert prices.kinds == (StepKind.DENOISE, StepKind.DENOISE, StepKind.COMMIT, StepKind.DECODE)
    decode = prices.steps[StepKind.DECODE]
    assert decode.scatter[0] == pytest.approx(said["min_ms"] / said["median_ms"])
    assert decode.scatter[-1] == pytest.approx(said["max_ms"] / said["median_ms"])
    assert decode.seconds(1) * 1e3 == pytest.approx(said["median_ms"])
    assert decode.seconds(2) * 1e3 == pytest.approx(pairs["decode"]["together"]["median_ms"])
    with pytest.raises(BadSheet, match="not of 'drive'"):
        measured(sheet, ["drive"])


def test_devices_have_names_or_files(tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text(
        '{"name": "mine", "title": "Mine", "memory_gb": 96, "bf16_tflops": 500, "fp32_tflops": 50,'
        ' "bandwidth_gbps": 2000, "source": "my own"}'
    )
    on = priced(["longlive-1.3b"], str(mine))
    assert (on.device, on.memory_bytes) == ("mine", 96 * 10**9)
    assert "my own" in on.cards[0].origin
    with pytest.raises(UnknownDevice, match="devices are h100"):
        priced(["longlive-1.3b"], "h1000")
    with pytest.raises(NothingToCount, match="measured price sheet"):
        priced(["toy"], "h100")
    for broken, said in (
        ("{}", "no price sheet"),
        ("[", "no price sheet"),
        ('{"models": []}', "not of 'longlive-1.3b'"),
    ):
        mine.write_text(broken)
        with pytest.raises(BadSheet, match=said):
            priced(["longlive-1.3b"], str(mine))


def test_the_sheet_in_the_package_is_one_of_drive() -> None:
    (prices,) = measured(MEASURED["epyc-core"], ["drive"])
    assert "AMD EPYC" in prices.origin
    assert prices.kinds == (StepKind.COMMIT_DENOISE, StepKind.DECODE)
    assert 0.010 < prices.chunk_price < 0.020
    assert prices.steps[StepKind.DECODE].seconds(4) < 4 * prices.steps[StepKind.DECODE].seconds(1)
