"""`worldroom top`: what a server does now, as live tables or JSON over HTTP. Ctrl-C ends it."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Annotated

import httpx
import msgspec
import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table

from ..engine.api import Capacity, SessionInfo
from ..engine.session.state import SessionState
from .errors import fail
from .output import short_bytes


class Now(msgspec.Struct, frozen=True):
    """One look at a server; `at` in seconds."""

    at: float
    capacity: tuple[Capacity, ...]
    sessions: tuple[SessionInfo, ...]


class SessionNow(msgspec.Struct, frozen=True):
    """`fps`: frames a second between the last two looks."""

    fps: float
    info: SessionInfo


class TopReport(msgspec.Struct, frozen=True):
    """What one refresh shows."""

    cards: tuple[Capacity, ...]
    sessions: tuple[SessionNow, ...]


def top(
    url: Annotated[str, typer.Argument(help="The server's address.")] = "http://127.0.0.1:8080",
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Two looks, one table, and out.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Instead of tables one JSON object a line and refresh; with --once: one.")
    ] = False,
) -> None:
    """Sessions, classes, frame rates, lateness, price against measured, cache and the queue.

    A session that sleeps (paused, or its people are away) is listed apart: it holds no place.
    """
    try:
        with (
            httpx.Client(base_url=url, timeout=5.0) as client,
            nullcontext() if as_json or once else Live(screen=True, auto_refresh=False) as live,
        ):
            before = look(client)
            while True:
                time.sleep(every)
                now = look(client)
                shown = report(before, now)
                if as_json:
                    print(msgspec.json.encode(shown).decode(), flush=True)
                elif live is None:
                    Console().print(table(shown))
                else:
                    live.update(table(shown), refresh=True)
                before = now
                if once:
                    return
    except httpx.HTTPError as error:
        raise fail(f"no server answers at {url}: {type(error).__name__}") from None
    except msgspec.DecodeError as error:
        raise fail(f"{url} is a server of another version: {error}") from None
    except KeyboardInterrupt:
        pass


def look(client: httpx.Client) -> Now:
    capacity = client.get("/v1/capacity").raise_for_status().content
    sessions = client.get("/v1/sessions").raise_for_status().content
    return Now(
        time.monotonic(),
        msgspec.json.decode(capacity, type=tuple[Capacity, ...]),
        msgspec.json.decode(sessions, type=tuple[SessionInfo, ...]),
    )


def report(before: Now, now: Now) -> TopReport:
    """Frame rates come from the frames between the two looks."""
    frames = {entry.session: entry.frames for entry in before.sessions}
    seconds = max(1e-6, now.at - before.at)
    return TopReport(
        now.capacity,
        tuple(
            SessionNow(round((info.frames - frames.get(info.session, info.frames)) / seconds, 2), info)
            for info in now.sessions
        ),
    )


def table(shown: TopReport) -> Group:
    """Readable at 80 columns; names are never cut."""
    asleep = [entry.info for entry in shown.sessions if entry.info.state == SessionState.SUSPENDED]
    awake = [entry for entry in shown.sessions if entry.info.state != SessionState.SUSPENDED]
    parts: list[RenderableType] = [_cards(shown.cards), _awake(awake)]
    if asleep:
        parts.append(_asleep(asleep))
    return Group(*parts)


def _cards(cards: tuple[Capacity, ...]) -> Table:
    """One column per card and device, one line per figure."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="cards", title_justify="left")
    grid.add_column("")
    for entry in cards:
        grid.add_column(f"{entry.card}\n{entry.device}", overflow="fold", justify="right")
    rows: tuple[tuple[str, Callable[[Capacity], str]], ...] = (
        ("on", lambda e: e.device_model),
        ("its memory", lambda e: short_bytes(e.device_bytes)),
        ("weights", _turn),
        ("sessions awake", lambda e: f"{e.sessions - e.asleep} of {e.sessions_max}"),
        ("asleep", lambda e: str(e.asleep)),
        ("in line", lambda e: str(e.waiting)),
        ("device time", lambda e: f"{e.share_used:.0%} of {e.share_max:.0%}"),
        ("steps queued", lambda e: str(e.queue_depth)),
        ("chunks late", lambda e: f"{e.chunks_late} of {e.chunks_done}"),
        ("frames dropped", lambda e: str(e.frames_dropped)),
        ("faults", lambda e: str(e.faults)),
    )
    for name, figure in rows:
        grid.add_row(name, *map(figure, cards))
    for name in dict.fromkeys(pool.name for entry in cards for pool in entry.pools):
        grid.add_row(name, *(_pool(entry, name) for entry in cards))
    return grid


def _turn(entry: Capacity) -> str:
    """Whether it is there; else, who is in its way."""
    if entry.on_device:
        return "there"
    return f"away, behind {', '.join(entry.in_the_way)}" if entry.in_the_way else "away"


def _pool(entry: Capacity, name: str) -> str:
    """Nothing where the pool is told with another card of the device."""
    pools = [pool for pool in entry.pools if pool.name == name]
    return "".join(f"{short_bytes(p.used)} of {short_bytes(p.limit)}{' (host)' if p.host else ''}" for p in pools)


def _awake(sessions: list[SessionNow]) -> Table:
    made = _sessions("sessions", ("class", "state"), ("fps", "chunks", "late", "late by", "price", "measured"))
    for entry in sessions:
        info = entry.info
        made.add_row(
            info.session,
            info.latency_class,
            info.state,
            f"{entry.fps:.1f}",
            str(info.chunks),
            str(info.late),
            _time(info.late_us),
            _time(info.price_us),
            _time(info.measured_us),
        )
    made.caption = (
        "price: device time a chunk is counted at, 95th percentile of the last 32\nmeasured, late by: of the last chunk"
    )
    made.caption_justify = "left"
    return made


def _asleep(sessions: list[SessionInfo]) -> Table:
    made = _sessions("asleep: paused or left, they hold no place", ("class",), ("chunks", "late"))
    for info in sessions:
        made.add_row(info.session, info.latency_class, str(info.chunks), str(info.late))
    return made


def _sessions(title: str, words: tuple[str, ...], figures: tuple[str, ...]) -> Table:
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0), title=title, title_justify="left")
    made.add_column("session", overflow="fold", min_width=16)
    for heading in words:
        made.add_column(heading, no_wrap=True)
    for heading in figures:
        made.add_column(heading, no_wrap=True, justify="right")
    return made


def _time(us: int) -> str:
    return f"{us / 1000:.1f} ms" if us < 1_000_000 else f"{us / 1e6:.2f} s"
