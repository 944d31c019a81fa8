"""`worldroom top`: what a server does now, as a live table over HTTP. Ctrl-C ends it."""

import time
from typing import Annotated

import httpx
import msgspec
import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table

from ..engine.api import Capacity, SessionInfo
from .errors import fail


class Now(msgspec.Struct, frozen=True):
    """One look at a server; `at` in seconds."""

    at: float
    capacity: tuple[Capacity, ...]
    sessions: tuple[SessionInfo, ...]


def top(
    url: Annotated[str, typer.Argument(help="The server's address.")] = "http://127.0.0.1:8080",
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Two looks, one table, and out.")] = False,
) -> None:
    """Sessions, classes, frame rates, lateness, price against measured, pools and the queue."""
    try:
        with httpx.Client(base_url=url, timeout=5.0) as client, Live(screen=not once) as live:
            before = look(client)
            while True:
                time.sleep(every)
                now = look(client)
                live.update(table(before, now), refresh=True)
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


def table(before: Now, now: Now) -> Group:
    """Frame rates come from the frames between the two looks."""
    cards = Table(title="cards", title_justify="left")
    for column in (
        "card",
        "device",
        "sessions",
        "share",
        "pool bytes",
        "queue",
        "waiting",
        "chunks",
        "late",
        "dropped",
        "faults",
    ):
        cards.add_column(column)
    for entry in now.capacity:
        cards.add_row(
            entry.card,
            entry.device,
            f"{entry.sessions} of {entry.sessions_max}",
            f"{entry.share_used:.0%} of {entry.share_max:.0%}",
            f"{entry.pool_bytes_used} of {entry.pool_bytes}",
            str(entry.queue_depth),
            str(entry.waiting),
            str(entry.chunks_done),
            str(entry.chunks_late),
            str(entry.frames_dropped),
            str(entry.faults),
        )
    sessions = Table(title="sessions", title_justify="left")
    for column in ("session", "card", "class", "phase", "fps", "chunks", "late", "last late", "price", "measured"):
        sessions.add_column(column)
    frames = {entry.session: entry.frames for entry in before.sessions}
    for info in now.sessions:
        fps = (info.frames - frames.get(info.session, info.frames)) / max(1e-6, now.at - before.at)
        sessions.add_row(
            info.session,
            info.card,
            info.latency_class,
            info.phase,
            f"{fps:.1f}",
            str(info.chunks),
            str(info.late),
            f"{info.late_us / 1000:.1f} ms",
            f"{info.price_us / 1000:.1f} ms",
            f"{info.measured_us / 1000:.1f} ms",
        )
    return Group(cards, sessions)
