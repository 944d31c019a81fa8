"""The checkpoint side of `worldroom cards`: pull published weights, and check a checkpoint without a GPU."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ..models.checkpoints.manifest import Manifest
from .errors import fail
from .options import OptionFlag, options_of
from .output import JsonFlag, print_object


class ComponentReport(msgspec.Struct, frozen=True):
    """One component of a checkpoint: where and how it was found, or the one-line problem.

    `error`: of one that stands in for another, as its manifest measures it.
    """

    component: str
    ok: bool
    layout: str
    path: str
    keys: int
    parameters: int
    dtypes: tuple[str, ...]
    problem: str
    error: float | None = None


class CheckpointReport(msgspec.Struct, frozen=True):
    card: str
    path: str
    ok: bool
    components: tuple[ComponentReport, ...]


def default_checkpoint(name: str) -> Path:
    """Where `cards pull` puts a card's files and `serve` looks for them."""
    from .folders import data_dir

    return data_dir() / "checkpoints" / name


def checkpoint_of(name: str, given: Path | None) -> Path | None:
    """The folder somebody named, else the one `cards pull` filled; None = the card's own weights, or none at all."""
    pulled = default_checkpoint(name)
    return given or (pulled if pulled.is_dir() else None)


def pull(
    name: Annotated[str, typer.Argument(help="Name of the card.")],
    into: Annotated[Path | None, typer.Option(help="Folder; default: checkpoints/NAME in the data folder.")] = None,
    endpoint: Annotated[str | None, typer.Option(envvar="HF_ENDPOINT", help="Address of the hub.")] = None,
    option: OptionFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Fetch a card's published weights: resumable, with progress, every file verified. A second call goes on."""
    from ..models.checkpoints.pull import Hub, PullError
    from ..models.checkpoints.pull import pull as pull_files

    manifest = _manifest(name, option)
    folder = into or default_checkpoint(name)
    folder.mkdir(parents=True, exist_ok=True)

    def say(line: str) -> None:
        typer.echo(line, err=as_json)

    say(f"licence of the weights: {manifest.licence}")
    try:
        record = pull_files(manifest, folder, Hub(endpoint), say)
    except PullError as error:
        raise fail(str(error)) from None
    if as_json:
        print_object(record)
    else:
        total = sum(file.bytes for file in record.files)
        typer.echo(f"{name}: {len(record.files)} files, {total:,} bytes in {folder}")


class ModularIndex(msgspec.Struct, frozen=True):
    card: str
    path: str
    components: tuple[str, ...]


def export(
    name: Annotated[str, typer.Argument(help="Name of the card.")],
    into: Annotated[Path, typer.Argument(help="Folder to write the index into.")],
    as_json: JsonFlag = False,
) -> None:
    """Write the card as diffusers' modular index: what its pipelines load, from where, and how it may be run."""
    from ..models import catalog
    from ..models.checkpoints.modular import modular_index, write_modular_index
    from ..models.weights import WeightsError

    manifest = _manifest(name)
    card = catalog.card(name)
    try:
        path = write_modular_index(card, manifest, into)
    except WeightsError as error:
        raise fail(str(error)) from None
    parts = tuple(part for part, entry in modular_index(card, manifest).items() if isinstance(entry, list))
    if as_json:
        print_object(ModularIndex(name, str(path), parts))
    else:
        typer.echo(f"{name}: {', '.join(parts)} in {path}")


def check_checkpoint(name: str, path: Path, option: list[str] | None, as_json: bool) -> None:
    """Headers against the manifest, component by component; exit status 1 when one does not fit.

    A light decoder is also compared with the full one.
    """
    from ..models.checkpoints.check import Finding, check

    if not path.exists():
        raise fail(f"no checkpoint at {path}: `worldroom cards pull {name}` fetches it")

    def report(finding: Finding) -> ComponentReport:
        found = finding.found
        if found is None:
            return ComponentReport(finding.component, False, "", "", 0, 0, (), finding.problem, finding.error)
        keys = len(found.table)
        return ComponentReport(
            finding.component,
            True,
            found.layout.name,
            str(found.path),
            keys,
            found.parameters,
            found.dtypes,
            "",
            finding.error,
        )

    components = tuple(report(finding) for finding in check(_manifest(name, option), path))
    whole = CheckpointReport(name, str(path), all(component.ok for component in components), components)
    if as_json:
        print_object(whole)
    else:
        _print(whole)
    raise typer.Exit(0 if whole.ok else 1)


def _print(report: CheckpointReport) -> None:
    table = Table("component", "layout", "keys", "parameters", "dtypes", "file or problem")
    for part in report.components:
        numbers = (f"{part.keys:,}", f"{part.parameters:,}") if part.ok else ("", "")
        table.add_row(
            part.component, part.layout or "-", *numbers, ", ".join(part.dtypes), part.problem or _where(part)
        )
    console = Console()
    console.width = max(console.width, 150)
    console.print(table)


def _where(part: ComponentReport) -> str:
    return part.path if part.error is None else f"{part.path}, {part.error:.3g} off"


def _manifest(name: str, option: list[str] | None = None) -> Manifest:
    from ..models import catalog

    try:
        family, card = catalog.family(name, catalog.options(name, options_of(option)))
    except catalog.REFUSALS as error:
        raise fail(str(error)) from None
    manifest = family.manifest(card)
    if manifest is None:
        raise fail(f"card '{name}' carries its own weights: there is nothing to pull")
    return manifest
