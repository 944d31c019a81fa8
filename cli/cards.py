"""`worldroom cards`: what can be served, what it costs, and whether its weights keep their promises."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from ..models.contract.card import ComponentSpec, ModelCard
from ..models.contract.placement import INPUT
from . import checkpoints
from .errors import fail
from .fit import fit
from .options import OptionFlag, options_of
from .output import JsonFlag, print_object, report_table, short_bytes, short_count

app = typer.Typer(help="List, show, pull, check and fit the worlds this server knows.", no_args_is_help=True)
app.command("pull")(checkpoints.pull)
app.command("export")(checkpoints.export)
app.command("fit")(fit)


class CardRow(msgspec.Struct, frozen=True):
    """One card as the command line shows it; cache and session bytes are of one session.

    `parameters`: of its networks, as `components` lists them. Tables and kept latents are no parameters; `weight_bytes`
    holds all that its files hold.
    """

    name: str
    version: str
    title: str
    family: str
    parameters: int
    cache_bytes_per_session: int
    frame: str
    fps: int
    frames_per_chunk: int
    sampler: str
    steps_allowed: tuple[int, ...]
    steps_default: int
    precisions: tuple[str, ...]
    recipe: str
    trained_by: str
    data: str
    parents: tuple[str, ...]
    exact: bool
    controls: tuple[str, ...]
    components: tuple[str, ...]
    loops: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    previews: bool = False
    method: str = ""
    assumes_loop: str = ""
    consistency_required: str = ""
    licence: str = ""
    weight_bytes: int = 0
    session_bytes: int = 0
    flop_per_chunk: int = 0
    price: str = ""


class CardList(msgspec.Struct, frozen=True):
    cards: tuple[CardRow, ...]


@app.command("list")
def list_cards(as_json: JsonFlag = False) -> None:
    """List the cards."""
    from ..models import catalog

    rows = tuple(_row(name) for name in catalog.names())
    if as_json:
        print_object(CardList(rows))
        return
    Console().print(_listed(rows))


def _listed(rows: tuple[CardRow, ...]) -> Table:
    """Readable at 80 columns: names are never cut; titles and all else are `cards show`'s."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("card", no_wrap=True, min_width=max(len(row.name) for row in rows))
    for heading in ("parameters", "picture", "fps", "steps"):
        table.add_column(heading, no_wrap=True, justify="right")
    for row in rows:
        steps = ", ".join(f"[{n}]" if n == row.steps_default else str(n) for n in row.steps_allowed)
        size = short_count(row.parameters) if row.parameters else "–"
        table.add_row(row.name, size, row.frame.split(" ")[0], str(row.fps), Text(steps))
    table.caption = Text("steps: allowed by the recipe, [default]; all else: `worldroom cards show CARD`")
    table.caption_justify = "left"
    return table


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="Name of the card.")], as_json: JsonFlag = False) -> None:
    """Show one card: components, recipe, cost per session."""
    from ..models.weights import WeightsError

    try:
        row = _row(name, counted=True)
    except WeightsError as error:
        raise fail(str(error)) from None
    if as_json:
        print_object(row)
        return
    table = Table(title=f"{row.name} {row.version}", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for field in msgspec.structs.fields(row):
        table.add_row(field.name.replace("_", " "), Text(_shown(field.name, getattr(row, field.name))))
    Console().print(table)


@app.command("check")
def check(
    name: Annotated[str, typer.Argument(help="Name of the card.")],
    path: Annotated[
        Path | None,
        typer.Argument(help="A checkpoint: its folder or one file. Headers alone are read, no GPU is used."),
    ] = None,
    option: OptionFlag = None,
    quality: Annotated[bool, typer.Option(help="Also measure the world against its simulator (minutes).")] = False,
    long: Annotated[bool, typer.Option(help="With --quality: also 10,000 frames.")] = False,
    sheets: Annotated[Path | None, typer.Option(help="With --quality: write sample sheets into this folder.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Check a card's weight files, or the checkpoint at PATH against the card's manifest; --quality measures promises.

    Exit status 1 when a component does not fit or a gate fails.
    """
    from ..models import catalog
    from ..models.weights import WeightsError

    _row(name)
    path = checkpoints.checkpoint_of(name, path)
    if path is not None:
        checkpoints.check_checkpoint(name, path, option, as_json)
    try:
        loaded = catalog.load(name, options=catalog.options(name, options_of(option)))
    except (*catalog.REFUSALS, WeightsError) as error:
        raise fail(str(error)) from None
    if not quality:
        if as_json:
            print_object(CheckReport(card=name, weights=loaded.weights, ok=True))
        else:
            typer.echo(f"{name}: weights {loaded.weights} load and fit the card")
        return
    if name not in ("drive", "dream"):
        raise fail(f"card '{name}' has no quality measure; drive and dream have one")
    _check_quality(name, long, sheets, as_json)


def _check_quality(name: str, long: bool, sheets: Path | None, as_json: bool) -> None:
    from ..models.dream.card import WEIGHTS as DREAMED
    from ..models.drive.card import WEIGHTS as PAINTED
    from ..training.dream import quality as dream
    from ..training.drive import quality as drive

    with Progress(transient=True, disable=as_json) as bars:
        task = bars.add_task("dreaming", total=None)

        def progress(frames: int) -> None:
            bars.advance(task, frames)

        report: drive.QualityReport | dream.DreamReport
        if name == "drive":
            report = drive.measure_card(PAINTED, sheets, not long, progress)
        else:
            report = dream.measure_card(DREAMED, PAINTED / "judge.safetensors", sheets, not long, progress)
    failures = report.failures()
    if as_json:
        print_object(report)
    else:
        report_table(f"{name} against its simulator", report)
        for failure in failures:
            typer.secho(failure, fg=typer.colors.RED)
    raise typer.Exit(1 if failures else 0)


class CheckReport(msgspec.Struct, frozen=True):
    card: str
    weights: str
    ok: bool


def _shown(name: str, value: object) -> str:
    match value:
        case bool() | str():
            return str(value)
        case int():
            return f"{value:,} ({short_bytes(value)})" if "bytes" in name else f"{value:,}"
        case (int(), *_):
            return ", ".join(map(str, value))
        case tuple():
            return "\n".join(map(str, value))
        case _:
            raise TypeError(f"no way to show {name} = {value!r}")


def _flows(card: ModelCard) -> tuple[str, ...]:
    """What flows from node to node of its program; of what may go in, what this card takes."""
    takes = card.capabilities.takes
    edges = [edge for edge in card.program.edges if edge.source != INPUT or edge.payload in takes]
    return tuple(f"{edge.source} -> {edge.target}: {edge.payload}" for edge in edges)


def _component(part: ComponentSpec) -> str:
    size = f"{part.parameters:,} parameters, " if part.parameters else ""
    return f"{part.name}: {part.role}, {size}{part.licence}"


def _row(name: str, counted: bool = False) -> CardRow:
    """`counted`: also what may have to be run to be counted."""
    from ..models import catalog

    try:
        card = catalog.card(name)
    except catalog.REFUSALS as error:
        raise fail(str(error)) from None
    frame, recipe = card.frame, card.recipe
    account = catalog.account(name) if counted else None
    cache = card.cache.bytes_per_session if card.cache else 0
    return CardRow(
        name=card.name,
        version=card.version,
        title=card.title,
        family=card.family,
        parameters=sum(part.parameters for part in card.components),
        cache_bytes_per_session=cache,
        frame=f"{frame.width}x{frame.height} shown at {frame.width * frame.scale}x{frame.height * frame.scale}",
        fps=frame.fps,
        frames_per_chunk=frame.per_chunk,
        sampler=recipe.sampler,
        steps_allowed=recipe.steps_allowed(),
        steps_default=recipe.default.steps,
        precisions=tuple(recipe.precisions),
        recipe=recipe.name,
        trained_by=recipe.command,
        data=recipe.data,
        parents=recipe.parents,
        exact=card.parity.exact,
        controls=tuple(f"{control.name}: {' '.join(control.keys)}" for control in card.controls),
        components=tuple(_component(part) for part in card.components),
        loops=tuple(f"{loop.name}: {' '.join(loop.steps)}" for loop in card.loops),
        program=tuple(f"{node.name}: {node.where}" for node in card.program.nodes),
        flows=_flows(card),
        takes=tuple(card.capabilities.takes),
        gives=tuple(card.capabilities.gives),
        previews=card.capabilities.previews,
        method=recipe.method,
        assumes_loop=recipe.assumes_loop,
        consistency_required=recipe.consistency_required,
        licence="; ".join(dict.fromkeys(part.licence for part in card.components)),
        weight_bytes=account.weight_bytes if account else 0,
        session_bytes=account.session_bytes if account else cache,
        flop_per_chunk=account.flop_per_chunk if account else 0,
        price="measured at warm-up on the device that serves; `worldroom bench model "
        + card.name
        + "` measures it here",
    )
