"""A page whose machine goes from one network to another: server, networks and browser in namespaces of their own.

    client  --- one ---  10.77.1.1  \\
            --- two ---  10.77.2.1  --  10.77.9.1, the server's address, by whichever of them is up

Run as root: `unshare --net python -m worldroom.tests.browser.moving`; prints one line of JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import Page, sync_playwright
from worldroom.clients.bench.browser import CHROMIUM_FLAGS

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
            ip("addr", "add", f"10.77.{number}.1/24", "dev", f"net{number}")
            ip("link", "set", f"net{number}", "up")
            in_client("addr", "add", f"10.77.{number}.2/24", "dev", f"eth{number}")
        join(1)
        yield
    finally:
        ip("netns", "del", CLIENT)


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


def scene() -> dict[str, object]:
    """`back_ms`: from the moment when there is another network to a picture. `announced`: the browser told the page."""
    with tempfile.TemporaryDirectory() as folder, networks(), server(folder) as address, page(folder) as there:
        there.goto(f"{address}/r/moves")
        there.wait_for_function(PLAYING, timeout=PATIENCE_MS)
        before = there.evaluate("[worldroom.world.welcome.session, worldroom.world.onScreen.chunk]")
        there.evaluate(WATCH)
        in_client("link", "set", "eth1", "down")
        time.sleep(1.0)
        join(2)
        moved_ms = there.evaluate("performance.now()")
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
        }


if __name__ == "__main__":
    print(json.dumps(scene()))
