"""`worldroom bench kernels`: every operation against its formula in float64, then against the clock and this machine.

The machine's own copy and matrix product, measured first, are the roof; shares are of what is nearer. The copy is of
far more than a cache holds, so a share above 100 % says that an operation ran from cache.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ...clock import SystemClock
from ..output import JsonFlag, print_object

if TYPE_CHECKING:
    import torch

    from .kernel_cases import Case


class Times(msgspec.Struct, frozen=True):
    """Milliseconds of one run."""

    min_ms: float
    median_ms: float
    max_ms: float


class Roof(msgspec.Struct, frozen=True):
    """What this machine does at best, measured: bytes read and written by a copy, FLOP of a large product."""

    dtype: str
    bytes_per_s: float
    flop_per_s: float


class KernelFigure(msgspec.Struct, frozen=True):
    """`error`: largest difference from float64 over the largest value. `eager`: the torch reference.

    `share`: of what bandwidth or arithmetic allows, whichever is less.
    """

    operation: str
    size: str
    dtype: str
    ran: str
    reason: str
    error: float
    chosen: Times
    eager: Times
    compiled: Times | None
    sdpa: Times | None
    bytes: int
    flop: int
    share: float


class KernelReport(msgspec.Struct, frozen=True):
    device: str
    torch: str
    triton: str
    threads: int
    roofs: tuple[Roof, ...]
    figures: tuple[KernelFigure, ...]


def bench_kernels(
    repeats: Annotated[int, typer.Option(min=3, max=1000, help="Timed runs of each.")] = 20,
    compiled: Annotated[
        bool | None, typer.Option("--compiled/--no-compiled", help="Time torch.compile too; default: on a GPU.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Correctness, time and share of the roofline of every kernel: small sizes on a CPU, Wan's on a GPU."""
    report = measure(repeats, compiled)
    if as_json:
        print_object(report)
        return
    roofs = ", ".join(
        f"{r.dtype} {r.bytes_per_s / 1e9:.0f} GB/s {r.flop_per_s / 1e12:.2f} TFLOP/s" for r in report.roofs
    )
    typer.echo(
        f"{report.device}, {report.threads} threads, torch {report.torch}, triton {report.triton}; roofs: {roofs}"
    )
    Console().print(table(report))


def measure(repeats: int, compiled: bool | None = None) -> KernelReport:
    """All figures, in float32 and bfloat16."""
    import torch

    from ...kernels.backend import triton
    from .kernel_cases import SMALL, WAN, cases

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gpu = device.type == "cuda"
    clock = _Stopwatch(gpu, repeats)
    roofs, figures = [], []
    with torch.inference_mode():
        for dtype in (torch.float32, torch.bfloat16):
            roof = _roof(clock, device, dtype)
            roofs.append(roof)
            for case in cases(device, WAN if gpu else SMALL, dtype):
                figures.append(_figure(clock, case, roof, gpu if compiled is None else compiled))
    return KernelReport(
        device=torch.cuda.get_device_name() if gpu else "cpu",
        torch=str(torch.__version__),
        triton="none" if triton is None else triton.__version__,
        threads=torch.get_num_threads(),
        roofs=tuple(roofs),
        figures=tuple(figures),
    )


def _figure(clock: _Stopwatch, case: Case, roof: Roof, compiled: bool) -> KernelFigure:
    import torch

    from ...kernels.backend import Backend

    exact, made = case.exact(), case.run(None).double()
    error = float((made - exact).abs().max() / exact.abs().max())
    del exact, made
    chosen = clock.times(lambda: case.run(None))
    eager = chosen if case.choice.backend is Backend.TORCH else clock.times(lambda: case.run(Backend.TORCH))
    whole = clock.times(torch.compile(lambda: case.run(Backend.TORCH))) if compiled and case.compiles else None
    bound = max(case.bytes / roof.bytes_per_s, case.flop / roof.flop_per_s)
    return KernelFigure(
        operation=case.name,
        size=case.size,
        dtype=str(case.dtype).removeprefix("torch."),
        ran=case.choice.backend,
        reason=case.choice.reason,
        error=error,
        chosen=chosen,
        eager=eager,
        compiled=whole,
        sdpa=None if case.sdpa is None else clock.times(case.sdpa),
        bytes=case.bytes,
        flop=case.flop,
        share=bound / (chosen.min_ms / 1000),
    )


def _roof(clock: _Stopwatch, device: torch.device, dtype: torch.dtype) -> Roof:
    import torch

    gpu = device.type == "cuda"
    source = torch.ones((2**30 if gpu else 2**25) // dtype.itemsize, dtype=dtype, device=device)
    target = torch.empty_like(source)
    copy = clock.times(lambda: target.copy_(source))
    side = 8192 if gpu else 512
    a = torch.randn(side, side, device=device).to(dtype)
    product = clock.times(lambda: a @ a)
    bytes_per_s = 2 * source.numel() * dtype.itemsize / (copy.min_ms / 1000)
    return Roof(str(dtype).removeprefix("torch."), bytes_per_s, 2 * side**3 / (product.min_ms / 1000))


class _Stopwatch:
    """Times of `repeats` runs after two that warm up; on a GPU by its own events, the queue drained before."""

    def __init__(self, gpu: bool, repeats: int) -> None:
        self._gpu, self._repeats, self._clock = gpu, repeats, SystemClock()

    def times(self, run: Callable[[], object]) -> Times:
        for _ in range(2):
            run()
        spent = [self._on_gpu(run) if self._gpu else self._on_cpu(run) for _ in range(self._repeats)]
        return Times(min(spent), statistics.median(spent), max(spent))

    def _on_cpu(self, run: Callable[[], object]) -> float:
        start = self._clock.now()
        run()
        return (self._clock.now() - start) * 1000

    def _on_gpu(self, run: Callable[[], object]) -> float:
        import torch

        torch.cuda.synchronize()
        event: Any = torch.cuda.Event
        start, end = event(enable_timing=True), event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end))


def table(report: KernelReport) -> Table:
    """Median ms of each way to run it; the chosen one also at best."""
    made = Table("operation", "size", "dtype", "ran", "error", "min ms", "ms", "eager", "compiled", "sdpa", "share")
    for figure in report.figures:
        ways = (figure.eager, figure.compiled, figure.sdpa)
        made.add_row(
            figure.operation,
            figure.size,
            figure.dtype,
            figure.ran,
            f"{figure.error:.1e}",
            f"{figure.chosen.min_ms:.3f}",
            f"{figure.chosen.median_ms:.3f}",
            *("" if way is None else f"{way.median_ms:.3f}" for way in ways),
            f"{figure.share:.1%}",
        )
    return made
