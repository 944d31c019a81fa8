"""`worldroom bench model`: what a card's steps cost on this machine: ms per step and chunk, frames a second, bytes."""

import os
import random
import resource
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ...clock import SystemClock
from ...models.contract.loaded import LoadedCard
from ..checkpoints import checkpoint_of
from ..errors import fail
from ..options import OptionFlag, options_of
from ..output import JsonFlag, print_object
from . import rows as rows_bench


class StepFigure(msgspec.Struct, frozen=True):
    """One step kind over all measured chunks; the first chunk, which opens the world, is left out."""

    kind: str
    per_chunk: float
    min_ms: float
    median_ms: float
    max_ms: float


class ModelReport(msgspec.Struct, frozen=True):
    """`fps`: frames made a second by one session that never waits. `realtime`: fps over the card's own pace.

    `batches`: steps of several rows, where asked for.
    """

    card: str
    device: str
    precision: str
    compiled: bool
    steps: int
    chunks: int
    prompt_ms: float
    opening_ms: float
    chunk_ms: float
    fps: float
    realtime: float
    weight_bytes: int
    session_bytes: int
    peak_bytes: int
    figures: tuple[StepFigure, ...]
    batches: tuple[rows_bench.RowsFigure, ...]


class ModelReports(msgspec.Struct, frozen=True):
    """`load`: the machine's 1-minute load average at the start and at the end."""

    load: tuple[float, float]
    models: tuple[ModelReport, ...]


def bench_model(
    card: Annotated[list[str] | None, typer.Argument(help="Names of cards; default: every tiny one.")] = None,
    chunks: Annotated[int, typer.Option(min=1, max=1000, help="Chunks to measure after the opening one.")] = 5,
    checkpoint: Annotated[Path | None, typer.Option(help="Root of published weights.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the world and of the presses.")] = 0,
    precision: Annotated[str | None, typer.Option(help="As the recipe allows; default: the recipe's.")] = None,
    compiled: Annotated[bool, typer.Option("--compiled", help="Blocks run compiled, where the recipe allows.")] = False,
    rows: Annotated[
        list[int] | None, typer.Option(min=1, max=16, help="Also time steps of so many rows, together and row by row.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="With --rows: timed runs of each.")] = 20,
    option: OptionFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Run one session alone on the device and time every step of each card."""
    from ...models import catalog

    names = card or catalog.random_weights()
    before = os.getloadavg()[0]
    given = options_of(option)
    reports = tuple(
        measure(_loaded(name, checkpoint, precision, compiled, given), chunks, seed, rows or (), repeats)
        for name in names
    )
    if as_json:
        print_object(ModelReports((round(before, 2), round(os.getloadavg()[0], 2)), reports))
        return
    for report in reports:
        _print(report)


def _loaded(
    name: str, checkpoint: Path | None, precision: str | None, compiled: bool, given: Mapping[str, str]
) -> LoadedCard:
    from ...models import catalog
    from ...models.contract.recipe import Precision
    from ...models.shared.compiled import NoCompiler
    from ...models.weights import WeightsError

    try:
        options = catalog.options(name, given)
        default = catalog.card(name, options).recipe.default
        choice = replace(default, precision=Precision(precision or default.precision), compiled=compiled)
        asked = None if choice == default else choice  # a card may know better than its recipe's default what runs here
        return catalog.load(name, asked, checkpoint_of(name, checkpoint), options)
    except (*catalog.REFUSALS, WeightsError, NoCompiler, ImportError) as error:
        raise fail(str(error)) from None
    except ValueError as error:
        raise fail(f"{error}; there are {', '.join(Precision)}") from None


def _print(report: ModelReport) -> None:
    table = Table("step", "a chunk", "min ms", "median ms", "max ms", title=_title(report))
    for figure in report.figures:
        times = (f"{value:.2f}" for value in (figure.min_ms, figure.median_ms, figure.max_ms))
        table.add_row(figure.kind, f"{figure.per_chunk:g}", *times)
    Console().print(table)
    if report.batches:
        Console().print(rows_bench.table(report.batches))
    typer.echo(f"chunk {report.chunk_ms:.1f} ms (median), opening {report.opening_ms:.1f} ms")
    typer.echo(f"{report.fps:.1f} frames a second = {report.realtime:.2f} x its pace")
    sizes = (report.weight_bytes, report.session_bytes, report.peak_bytes)
    typer.echo("weights {:,} bytes, session {:,} bytes, peak {:,} bytes".format(*sizes))


def _title(report: ModelReport) -> str:
    how = f"{report.precision}, compiled" if report.compiled else report.precision
    return f"{report.card}, {how}, {report.steps} steps on {report.device}"


@rows_bench.one_thread()
def measure(loaded: LoadedCard, chunks: int, seed: int, rows: Sequence[int], repeats: int) -> ModelReport:
    """One session through `chunks` chunks after the opening one; then steps of `rows` rows, `repeats` times."""
    from ...models import catalog
    from ...models.parity.interleave import made_up_inputs
    from ...models.parity.session import ParitySession

    clock, device = SystemClock(), _Device()
    loaded.runtime.allocate(1)
    inputs = made_up_inputs(loaded, chunks + 1, random.Random(seed))
    start = clock.now()
    for text in {given.prompt for given in inputs}:
        loaded.runtime.encode_prompt(text)
    prompt_ms = (clock.now() - start) * 1000 / len({given.prompt for given in inputs})
    session = ParitySession(loaded, 0, seed, inputs, loaded.runtime.encode_prompt)
    steps: dict[str, list[float]] = {}
    whole: list[float] = []
    frames = 0
    while not session.finished:
        session.begin()
        total = 0.0
        while (plan := session.plan) is not None:
            start = clock.now()
            (result,) = loaded.runtime.execute(plan.kind, [plan.row], [session.view()])
            device.synchronize()
            spent = (clock.now() - start) * 1000
            total += spent
            if session.outcomes:
                steps.setdefault(plan.kind, []).append(spent)
            session.advance(result)
        whole.append(total)
        frames += len(session.outcomes[-1].frames) if len(session.outcomes) > 1 else 0
    account = catalog.account(loaded.card.name)
    cache = loaded.card.cache.bytes_per_session if loaded.card.cache else 0
    fps = frames / (sum(whole[1:]) / 1000)
    return ModelReport(
        card=loaded.card.name,
        device=device.name,
        precision=loaded.choice.precision,
        compiled=loaded.choice.compiled,
        steps=loaded.choice.steps,
        chunks=chunks,
        prompt_ms=prompt_ms,
        opening_ms=whole[0],
        chunk_ms=statistics.median(whole[1:]),
        fps=fps,
        realtime=fps / loaded.card.frame.fps,
        weight_bytes=account.weight_bytes if account else 0,
        session_bytes=account.session_bytes if account else cache,
        peak_bytes=device.peak_bytes(),
        figures=tuple(
            StepFigure(kind, len(times) / chunks, min(times), statistics.median(times), max(times))
            for kind, times in steps.items()
        ),
        batches=rows_bench.measure(loaded, rows, repeats) if rows else (),
    )


class _Device:
    """The accelerator if torch has one in use, else this process."""

    def __init__(self) -> None:
        torch = sys.modules.get("torch")
        self._cuda = torch.cuda if torch is not None and torch.cuda.is_available() else None
        self.name = self._cuda.get_device_name() if self._cuda else "cpu"

    def synchronize(self) -> None:
        if self._cuda is not None:
            self._cuda.synchronize()

    def peak_bytes(self) -> int:
        """Peak allocated on the accelerator, or peak resident memory of the process."""
        if self._cuda is not None:
            return int(self._cuda.max_memory_allocated())
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
