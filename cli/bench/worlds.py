"""`worldroom bench worlds`: the tiny worlds of every family, live, one after the other."""

from typing import Annotated

import typer
from rich.console import Console

from ..errors import did_you_mean, fail
from ..output import JsonFlag, print_object


def bench_worlds(
    card: Annotated[list[str] | None, typer.Option(help="Only these cards; default: every tiny one.")] = None,
    seconds: Annotated[float, typer.Option(min=2, help="Measuring time of each card.")] = 8.0,
    as_json: JsonFlag = False,
) -> None:
    """Frames a chunk, pacing and jitter of every tiny world through a server of its own and real WebRTC."""
    from ...clients.bench import worlds
    from ...clients.bench.server import ServerFailed
    from ...models import catalog

    names = catalog.names()
    for name in card or ():
        if name not in names:
            raise fail(f"no card '{name}'{did_you_mean(name, names)}")
    live = [name for name in catalog.random_weights() if catalog.card(name).loops[0].name == "chunk_rollout"]
    try:
        report = worlds.measure_worlds(card or live, seconds)
    except (ServerFailed, ConnectionError) as error:
        raise fail(str(error)) from None
    if as_json:
        print_object(report)
    else:
        Console().print(worlds.table(report))
