"""A page, and the Python client, whose machine goes from one network to another: server, networks and clients in
namespaces of their own.

    client  --- one --- bridge 10.77.1.1  \\
            --- two --- bridge 10.77.2.1  --  10.77.9.1, the server's address, by whichever of them is up

First a link goes down and another one up, which the browser is told. Then the far end of that one is taken off its
bridge and put back: nothing arrives, and nobody is told.

Run as root: `unshare --net python -m worldroom.tests.browser.moving [SECONDS OF SILENCE]`; prints one line of JSON.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, sync_playwright
from worldroom.clients.bench.browser import CHROMIUM_FLAGS
from worldroom.clients.python.room import join as joined
from worldroom.rtc.wire import Role

CLIENT = f"worldroom-{os.getpid()}"
SERVER, PORT = "10.77.9.1", 8080
READY_S = 90.0
PATIENCE_MS = 60_000
PLAYING = "document.body.dataset.phase === 'live' && worldroom.world.onScreen !== null"
WATCH = """() => {
  const seen = (globalThis.seen = { heard: [], frames: [], lost: [], live: [] });
  const note = (list) => () => seen[list].push(performance.now());
  addEventListener('online', note('heard'));
  navigator.connection?.addEventListener('change', note('heard'));
  worldroom.room.on('frame', note('frames'));
  worldroom.room.on('link', ({ phase }) => note(phase === 'live' ? 'live' : 'lost')());
}"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def in_client(*words: str) -> None:
    ip("netns", "exec", CLIENT, "ip", *words)


@contextmanager
def networks() -> Iterator[None]:
    """Two links from the client's namespace to this one; the first is up."""
    ip("link", "set", "lo", "up")
    ip("addr", "add", f"{SERVER}/32", "dev", "lo")
    ip("netns", "add", CLIENT)
    try:
        in_client("link", "set", "lo", "up")
        for number in (1, 2):
            ip("link", "add", f"net{number}", "type", "veth", "peer", "name", f"eth{number}", "netns", CLIENT)
            ip("link", "set", f"net{number}", "up")
            ip("link", "add", "name", f"bridge{number}", "type", "bridge")
            ip("addr", "add", f"10.77.{number}.1/24", "dev", f"bridge{number}")
            ip("link", "set", f"bridge{number}", "up")
            attach(number)
            in_client("addr", "add", f"10.77.{number}.2/24", "dev", f"eth{number}")
        join(1)
        yield
    finally:
        ip("netns", "del", CLIENT)


def attach(number: int) -> None:
    ip("link", "set", f"net{number}", "master", f"bridge{number}")


def detach(number: int) -> None:
    """The client's link stays up and leads nowhere."""
    ip("link", "set", f"net{number}", "nomaster")


def join(number: int) -> None:
    in_client("link", "set", f"eth{number}", "up")
    in_client("route", "replace", "default", "via", f"10.77.{number}.1")


@contextmanager
def server(folder: str) -> Iterator[str]:
    command = [str(Path(sys.executable).parent / "worldroom"), "serve", "--card", "toy", "--option", "fps=12"]
    options = ["--host", "0.0.0.0", "--port", str(PORT), "--open", "--data", folder]
    with open(f"{folder}/log", "wb") as log, subprocess.Popen([*command, *options], stdout=log, stderr=log) as process:
        try:
            address, late = f"http://{SERVER}:{PORT}", time.monotonic() + READY_S
            while not _ready(address):
                if time.monotonic() > late or process.poll() is not None:
                    raise SystemExit(Path(f"{folder}/log").read_text())
                time.sleep(0.2)
            yield address
        finally:
            process.terminate()


def _ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}/readyz", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


@contextmanager
def page(folder: str) -> Iterator[Page]:
    browser = Path(folder) / "browser"
    browser.write_text(f'#!/bin/sh\nexec ip netns exec {CLIENT} chromium "$@"\n')
    browser.chmod(0o755)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=str(browser), args=list(CHROMIUM_FLAGS))
        try:
            yield running.new_page()
        finally:
            running.close()


@contextmanager
def python_client(address: str) -> Iterator["subprocess.Popen[str]"]:
    """A spectator in the client's namespace; a line at its first picture, and at the first after a second without."""
    command = ["ip", "netns", "exec", CLIENT, sys.executable, "-m", "worldroom.tests.browser.moving", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


async def watch(address: str) -> None:
    """What `python_client` runs; the lines are moments on the clock of the machine."""
    async with asyncio.timeout(READY_S), joined(f"{address}/r/moves", role=Role.SPECTATOR, decode=False) as room:
        last = float("-inf")
        async for _ in room.frames():
            now = time.monotonic()
            if now - last > 1.0:
                print(now, flush=True)
            last = now


def scene(silence_s: float) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder, networks(), server(folder) as address, page(folder) as there:
        there.goto(f"{address}/r/moves")
        there.wait_for_function(PLAYING, timeout=PATIENCE_MS)
        there.evaluate(WATCH)
        moved = changed(there, told)
        moved.pop("at")
        with python_client(address) as client:
            assert client.stdout is not None
            client.stdout.readline()
            silent = changed(there, lambda: silently(silence_s))
            silent["python_back_ms"] = round(1000 * (float(client.stdout.readline()) - silent.pop("at")))
        return {"told": moved, "silent": silent}


def told() -> None:
    in_client("link", "set", "eth1", "down")
    time.sleep(1.0)
    join(2)


def silently(seconds: float) -> None:
    detach(2)
    time.sleep(seconds)
    attach(2)


def changed(there: Page, change: Callable[[], None]) -> dict[str, Any]:
    """`back_ms`: from the end of the change to a picture. `announced`: the browser told the page. `at`: of the end."""
    before = there.evaluate("[worldroom.world.welcome.session, worldroom.world.onScreen.chunk]")
    there.evaluate("Object.values(seen).forEach((list) => list.length = 0)")
    change()
    at, moved_ms = time.monotonic(), there.evaluate("performance.now()")
    there.wait_for_function(f"seen.frames.some((at) => at > {moved_ms}) && {PLAYING}", timeout=PATIENCE_MS)
    first_ms = there.evaluate(f"seen.frames.find((at) => at > {moved_ms})")
    after = there.evaluate("[worldroom.world.welcome.session, worldroom.world.onScreen.chunk]")
    seen = there.evaluate("({ heard: seen.heard.length, lost: seen.lost.length })")
    return {
        "back_ms": round(first_ms - moved_ms),
        "announced": seen["heard"] > 0,
        "connected_anew": seen["lost"] > 0,
        "same_world": before[0] == after[0],
        "chunks_between": after[1] - before[1],
        "resumed": there.evaluate("worldroom.world.welcome.resumed"),
        "at": at,
    }


if __name__ == "__main__":
    argument = sys.argv[1] if len(sys.argv) > 1 else "6"
    if argument.startswith("http"):
        asyncio.run(watch(argument))
    else:
        print(json.dumps(scene(float(argument))))
