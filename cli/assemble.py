"""Builds a server from its options: worker, journal, rooms, edge; and takes it down in the reverse order.

The HTTP port answers at once; `/readyz` says 503 until the card is loaded, warm and priced.
"""

import asyncio
import os
import random
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from ..clock import Clock, SystemClock
from ..engine import heap
from ..engine.api import Capacity, CardInfo
from ..engine.device.memory import host_memory
from ..engine.worker.client import WorkerClient, WorkerFailed
from ..engine.worker.devices import WorkerDevice
from ..engine.worker.pool import WorkerPool
from ..engine.worker.process import WorkerProcess
from ..engine.worker.spec import WorkerSpec, fresh_folder
from ..models.contract.recipe import RuntimeChoice
from ..rtc.edge import EdgeSpec
from ..rtc.http.app import create_app
from ..rtc.http.library import Past
from ..rtc.http.server import EdgeServer
from ..sessions.erasing import Eraser
from ..sessions.journal.archive import Archive
from ..sessions.journal.archiver import Archiver
from ..sessions.journal.history import History
from ..sessions.journal.journal import Journal
from ..sessions.journal.latents import LatentsKeeper
from ..sessions.journal.redis_url import RedisUnreachable
from ..sessions.journal.ring import Ring, ring_path
from ..sessions.journal.script import SCRIPT_FAULTS
from ..sessions.library.library import Library
from ..sessions.recording.recordings import Recordings
from ..sessions.rooms.opener import RoomsSpec
from ..sessions.rooms.past import PastRooms
from ..sessions.rooms.recording import RoomRecordings
from ..sessions.rooms.rooms import Rooms
from ..sessions.rooms.suspend import RoomSuspension
from .checkpoints import checkpoint_of
from .export_tar import export_tar
from .folders import cache_dir
from .journal_place import FolderLock, FolderTaken, OpenedStore, serving, shown
from .logs import set_up
from .serve_spec import ServeSpec, UserFault, choice_of, options_of
from .stored_worlds import FOLDER, forget_checkpoints

WEB_ROOT = Path(__file__).resolve().parent.parent / "clients" / "web"
SPARE_AFTER_S = 30.0
SIMULATED = (sys.executable, "-m", "worldroom.simulation.worker")


async def run_server(spec: ServeSpec, listener: socket.socket) -> None:
    """Serve on `listener` until SIGINT or SIGTERM. Raises `UserFault` when it cannot start."""
    set_up(spec.log_format)
    console = Console(stderr=True)
    options = options_of(spec)
    choice = choice_of(spec, options)
    try:
        lock = FolderLock(spec.journal.data)
    except FolderTaken as error:
        raise UserFault(str(error)) from None
    try:
        await _serve(spec, choice, options, listener, console)
    finally:
        lock.close()


async def _serve(
    spec: ServeSpec,
    choice: RuntimeChoice | None,
    options: Mapping[str, bytes],
    listener: socket.socket,
    console: Console,
) -> None:
    """The data folder is this process's alone."""
    worlds = _folder(spec.journal.data / FOLDER)
    prices = cache_dir() / "prices"
    simulated = all(device.sheet for device in spec.devices)
    found = {card: checkpoint_of(card, spec.checkpoint) for card in ([] if simulated else spec.cards)}
    serving = WorkerSpec(
        spec.cards,
        choice,
        spec.engine,
        worlds,
        {card: folder for card, folder in found.items() if folder is not None},
        prices,
        SPARE_AFTER_S,
        options,
        adapters=spec.adapters.folder,
        ledgers=(ledgers := fresh_folder()),
    )
    clock = SystemClock()
    engine = WorkerPool(workers(serving, spec.devices, clock))
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, ledgers, ignore_errors=True)
        opened = await stack.enter_async_context(_store(spec))
        stack.push_async_callback(engine.close)
        archive = _archive(spec)
        journal = _journal(spec, clock, opened, archive)
        stack.push_async_callback(journal.close)
        history = History(opened.store, archive)
        suspension = RoomSuspension(opened.rooms, engine, history)
        rooms_spec = RoomsSpec(
            card=spec.cards[0],
            lease_s=spec.lease_seconds,
            seats=spec.seats,
            adapters=spec.adapters.stack,
            drivers=spec.drivers,
        )
        recordings = Recordings(spec.journal.data / "recordings", clock)
        stack.push_async_callback(recordings.close)
        await asyncio.to_thread(recordings.salvaged)
        films = RoomRecordings(recordings, spec.record_all)
        past_rooms = PastRooms(engine, history, random.Random())

        rooms = Rooms(
            engine, journal, clock, rooms_spec, suspension=suspension, recordings=films, futures=engine, past=past_rooms
        )
        stack.push_async_callback(rooms.close)
        noting = asyncio.create_task(suspension.keep_noting(rooms.open_rooms))
        stack.callback(noting.cancel)  # before the rooms close
        edge = EdgeSpec(WEB_ROOT, spec.loopback, spec.udp_ports, spec.ice, spec.media_address)
        eraser = Eraser(opened.store, archive, recordings, opened.rooms, partial(forget_checkpoints, spec.journal.data))
        past = Past(Library(history, recordings), eraser, partial(export_tar, spec.journal), past_rooms)
        app = create_app(rooms, engine, edge, clock, spec.access, films, past, spec.livekit)
        server = EdgeServer(app, spec.tls)
        warming = asyncio.create_task(_warm_up(engine, server, listener, console, spec, past_rooms))
        await server.until_signal(listener)
        if not warming.done():
            warming.cancel()  # told to stop while it was warming up
        with suppress(asyncio.CancelledError):
            await warming


def workers(serving: WorkerSpec, devices: Sequence[WorkerDevice], clock: Clock) -> tuple[WorkerClient, ...]:
    """One for each device, which it has to itself or shares with others in equal parts."""
    memory, cores = host_memory(), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parts = [(device, device.part_of(serving.spec, memory, cores or 1, len(devices))) for device in devices]
    return tuple(
        WorkerClient(
            replace(serving, device=device, spec=part),
            clock,
            partial(WorkerProcess, command=SIMULATED) if device.sheet else WorkerProcess,
        )
        for device, part in parts
    )


async def _warm_up(
    engine: WorkerPool, server: EdgeServer, listener: socket.socket, console: Console, spec: ServeSpec, past: PastRooms
) -> None:
    """Make the engine ready, then print where to go; a fault here stops the server instead of leaving it deaf."""
    shows, room = spec.shows, ""
    try:
        await engine.start()
        if shows is not None:
            room = await past.plan_replay(shows.session, shows.first or None, words=shows.words or "")
    except SCRIPT_FAULTS as error:
        server.should_exit = True
        raise UserFault(str(error)) from None
    except WorkerFailed as failed:
        server.should_exit = True
        raise UserFault(str(failed)) if failed.theirs else failed from None
    except BaseException:
        server.should_exit = True
        raise
    heap.set_apart()  # else a storm of offers stops every room for .2 s while the collector goes through all of it
    host, port = listener.getsockname()[:2]
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    scheme = "http" if spec.tls is None else "https"
    for card in engine.cards():
        devices = [entry for entry in engine.capacity() if entry.card == card.name]
        console.print(f"[bold]{card.title}[/bold]: {fitting(card, devices)}")
    address = f"{scheme}://{shown}:{port}{spec.access.base_path}/"
    what = f"r/{room}[/bold cyan] and watch" if room else "[/bold cyan] and drive"
    console.print(f"Open [bold cyan]{address}{what}. Ctrl-C stops the server.", soft_wrap=True)


def fitting(card: CardInfo, devices: Sequence[Capacity]) -> str:
    """How many sessions fit on all devices, and what happens to more; one entry per device.

    A card that is late even alone is said to be: nobody should take its one session for its full speed.
    """
    count, (first, *_) = sum(device.sessions_max for device in devices), devices
    fit = "1 session fits" if count == 1 else f"{count} sessions fit"
    if first.price_us * card.fps > 1e6 * card.frames_per_chunk:
        here = 1e6 * card.frames_per_chunk / first.price_us
        choose = f"--fps {max(1, int(here))} lets its clock go slower, --steps may have fewer"
        fit = f"slower than its pace: {here:.1f} fps here, not {card.fps} ({choose}); {fit}"
    where = first.device if len(devices) == 1 else f"{len(devices)} devices"
    return f"{fit} ({first.price_us / 1000:.1f} ms a chunk, {where}); further rooms wait in line."


def _folder(folder: Path) -> Path:
    """It is there from now on."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserFault(f"cannot use the data folder {folder}: {error.strerror}") from None
    return folder


def _archive(spec: ServeSpec) -> Archive:
    try:
        return spec.journal.opened_archive()
    except OSError as error:
        raise UserFault(str(error)) from None


def _journal(spec: ServeSpec, clock: SystemClock, opened: OpenedStore, archive: Archive) -> Journal:
    data = spec.journal.data
    try:
        archiver = Archiver(clock, opened.store, archive, spec.retention)
        ring = Ring(ring_path(data))
        latents = LatentsKeeper(archive, spec.latents)
        return Journal.open(clock, opened.store, data / "spool", None, opened.revive, ring, archiver, latents)
    except OSError as error:
        raise UserFault(f"cannot use the data folder {shown(data)}: {error.strerror or error}") from None


@asynccontextmanager
async def _store(spec: ServeSpec) -> AsyncIterator[OpenedStore]:
    async with AsyncExitStack() as stack:
        try:
            opened = await stack.enter_async_context(serving(spec.journal))
        except RedisUnreachable as error:
            raise UserFault(str(error)) from None
        except OSError as error:
            where = shown(spec.journal.data)
            raise UserFault(f"cannot use the data folder {where}: {error.strerror or error}") from None
        yield opened
