"""`worldroom cards fit`: how many sessions of a card a device holds; counted as admission counts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from .errors import fail
from .options import OptionFlag, options_of
from .output import JsonFlag, print_object, short_bytes

if TYPE_CHECKING:
    from ..models.devices import DataSheet


class FitReport(msgspec.Struct, frozen=True):
    """One card on one device. `by_compute`: at its own pace, 0 = slower than that even alone; None = not known here.

    `fps`: of one session alone. `by_memory` None: as many as one likes. `missing` is empty where one fits.
    """

    card: str
    device: str
    precision: str
    memory_bytes: int
    weight_bytes: int
    activation_bytes: int
    session_bytes: int
    by_memory: int | None
    by_compute: int | None
    fps: float | None
    missing: str


def fit(
    name: Annotated[str, typer.Argument(help="Name of the card.")],
    device: Annotated[
        str | None,
        typer.Option(help="h200, h100, b200, a100, l40s, rtx4090, a10g, cpu-avx2; or FILE. Without it: this machine."),
    ] = None,
    precision: Annotated[str | None, typer.Option(help="What the recipe allows; its default without.")] = None,
    option: OptionFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """How many sessions of a card fit a device? The same count as admission's and docs/CAPACITY.md's.

    Exit status 1 when not one fits; what is missing and what would fit is said in one line.
    """
    report = fit_report(name, device, precision, options_of(option))
    if as_json:
        print_object(report)
    else:
        typer.echo(report.missing or _said(report))
    raise typer.Exit(1 if report.missing else 0)


def fit_report(
    name: str, device: str | None, precision: str | None, options: Mapping[str, str] | None = None
) -> FitReport:
    """Fails with one line for a card, device or precision that there is not."""
    from ..engine.device.memory import device_memory
    from ..models import catalog
    from ..models.contract.recipe import Precision
    from ..models.devices import SHARE_OF_PEAK
    from ..models.holding import GB, DoesNotFit, card_bytes, check, most
    from ..models.holding import Memory as DeviceMemory
    from ..models.weights import WeightsError

    try:
        packed = catalog.options(name, options or {})
        card, footprint = catalog.card(name, packed), catalog.account(name, packed)
    except (*catalog.REFUSALS, WeightsError) as error:
        raise fail(str(error)) from None
    allowed = card.recipe.precisions
    if precision is not None and precision not in allowed:
        raise fail(f"'{name}' does not run in '{precision}': its recipe allows {', '.join(allowed)}")
    chosen = card.recipe.default.precision if precision is None else Precision(precision)
    sheet = None if device is None else _sheet(device)
    memory = device_memory() if sheet is None else DeviceMemory(sheet.memory_gb * GB, sheet.memory_gb * GB)
    counted, missing = card_bytes(card, footprint, chosen), ""
    if footprint is not None:
        try:
            check(card, footprint, chosen, memory.total, memory.free)
        except DoesNotFit as error:
            missing = str(error)
    pace = None
    if sheet is not None and footprint is not None:
        pace = SHARE_OF_PEAK * sheet.flops(chosen) / footprint.flop_per_second
    return FitReport(
        card=name,
        device="this machine" if sheet is None else sheet.title,
        precision=chosen,
        memory_bytes=memory.total,
        weight_bytes=counted.weights,
        activation_bytes=counted.activations,
        session_bytes=counted.session,
        by_memory=most(memory.less(counted.weights), counted),
        by_compute=None if pace is None else int(pace),
        fps=None if pace is None else round(min(1.0, pace) * card.frame.fps, 1),
        missing=missing,
    )


def _sheet(device: str) -> "DataSheet":
    from ..simulation.sheets import UnknownDevice, data_sheet

    try:
        return data_sheet(device)
    except UnknownDevice as error:
        raise fail(str(error)) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise fail(f"{device} is no data sheet: {error}") from None


def _said(report: FitReport) -> str:
    many = "as many as one likes" if report.by_memory is None else report.by_memory
    lines = [
        f"{report.card} ({report.precision}) on {report.device}: {many} by memory",
        f"  weights {short_bytes(report.weight_bytes)}, a step {short_bytes(report.activation_bytes)} a row, "
        f"a session {short_bytes(report.session_bytes)}, of {short_bytes(report.memory_bytes)}",
    ]
    if report.by_compute == 0:
        lines.append(f"  slower than its pace: {report.fps} fps there, alone")
    elif report.by_compute is not None:
        lines.append(f"  {report.by_compute} at its own pace of {report.fps} fps, by its FLOPs")
    return "\n".join(lines)
