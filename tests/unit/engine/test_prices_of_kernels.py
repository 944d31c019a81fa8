"""What the kernels' choose() looks at beside shapes is in the name of kept prices: where it would choose another
way, they are measured anew.
"""

import asyncio
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from worldroom.clock import LoopClock
from worldroom.engine import cost_store
from worldroom.engine.engine import Engine
from worldroom.engine.spec import EngineSpec
from worldroom.kernels import backend
from worldroom.kernels.backend import Backend
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import BlankEncoder, FakeDevice, steady, toy


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """The versions that were looked up."""
    cost_store.installed.cache_clear()
    yield
    cost_store.installed.cache_clear()


def install(patch: pytest.MonkeyPatch, triton: str | None) -> Backend:
    """Make it this Triton, or none; what the kernels would choose on a GPU then."""

    def version(package: str) -> str:
        if package != "triton":
            return "2.13.0"
        if triton is None:
            raise PackageNotFoundError(package)
        return triton

    cost_store.installed.cache_clear()
    patch.setattr(cost_store, "version", version)
    patch.setattr(backend, "triton", None if triton is None else SimpleNamespace(__version__=triton))
    return backend.choice(torch.device("cuda"), []).backend


def batches_of_a_start(folder: Path) -> int:
    """How many are run until the prices are known."""

    async def scene() -> int:
        device, clock = FakeDevice(steady(0.002)), LoopClock(asyncio.get_running_loop())
        spec, kept = EngineSpec(slots=4, max_rows=4), cost_store.CostStore(folder)
        engine = Engine((toy(),), clock, spec, device, BlankEncoder, prices=kept)
        await engine.start()
        await engine.close()
        return len(device.ran)

    made: int = run(scene())
    return made


def test_where_triton_goes_or_changes_prices_are_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert install(monkeypatch, "3.7.1") is Backend.TRITON
    measured = batches_of_a_start(tmp_path)
    kept = batches_of_a_start(tmp_path)
    assert kept < measured / 2
    assert install(monkeypatch, None) is Backend.TORCH, "another choice"
    assert batches_of_a_start(tmp_path) == measured
    assert install(monkeypatch, "3.8.0") is Backend.TRITON, "other code of the same kernels"
    assert batches_of_a_start(tmp_path) == measured
    assert install(monkeypatch, "3.7.1") is Backend.TRITON
    assert batches_of_a_start(tmp_path) == kept, "the sheet of before is still there"
    assert len([*tmp_path.iterdir()]) == 3
