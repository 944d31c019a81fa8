"""The page when its server is stopped and started again: it says so, comes back by itself and finds its world."""

import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from worldroom.tests.real_server import PATIENCE_S, served

from .conftest import PATIENCE_MS, Visitor

pytestmark = pytest.mark.browser


def listens(process: "subprocess.Popen[bytes]", base: str) -> None:
    port = int(base.rpartition(":")[2])
    while process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError(f"the server ended with {process.returncode}")


def test_a_page_says_that_the_server_stopped_and_finds_its_world_again(
    visitor: Callable[..., Visitor], tmp_path: Path
) -> None:
    with served(tmp_path) as (process, base):
        listens(process, base)
        alice = visitor().open(f"{base}/r/again").until_playing()
        alice.page.wait_for_function("worldroom.world.onScreen.chunk > 12", timeout=PATIENCE_MS)
        session, chunk = alice.world("welcome.session"), alice.number("worldroom.world.onScreen.chunk")
        process.send_signal(signal.SIGTERM)
        alice.until("document.getElementById('notice-title').textContent === 'The server has stopped'")
        process.wait(PATIENCE_S)
    port = int(base.rpartition(":")[2])
    with served(tmp_path, port) as (again, _):
        alice.until_playing()
        alice.until(f"worldroom.world.onScreen.chunk > {chunk}")
        assert alice.world("welcome.session") == session
        assert (alice.world("welcome.resumed"), alice.world("welcome.role")) == (True, "driver")
        alice.page.keyboard.down("ArrowRight")
        alice.until("document.querySelector('.cap[data-control=right]').classList.contains('applied')")
        again.send_signal(signal.SIGTERM)
        again.wait(PATIENCE_S)
