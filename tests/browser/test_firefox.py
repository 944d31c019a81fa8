"""The page in Debian's Firefox, over WebDriver BiDi: it has no H.264 there, plays VP8, and its layout holds."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import worldroom.clients.web

from .geometry import MEASURE

pytestmark = pytest.mark.browser

WEB = Path(worldroom.clients.web.__file__).parent
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")


@pytest.mark.skipif(FIREFOX is None or shutil.which("node") is None, reason="needs firefox-esr and node")
def test_firefox_plays_from_the_lobby_to_the_library_and_its_layout_holds(server: str) -> None:
    assert FIREFOX is not None
    runner = Path(__file__).with_name("firefox.mjs")
    folder = os.environ.get("WORLDROOM_SCREENS", "")
    done = subprocess.run(
        ["node", str(runner), server, folder, str(WEB)],
        env=os.environ | {"FIREFOX": FIREFOX, "MEASURE": MEASURE},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert "failed" not in said, json.dumps(said)
    assert said["worlds"] == ["Toy: a ship of small integers"]
    assert (said["phase"], said["state"], said["played"]) == ("live", "Live", True)
    assert (said["codec"].lower(), said["size"]) == ("video/vp8", [640, 384])
    assert said["frames"] >= 6, "of the twelve that a second has"
    assert said["changed"] > 20 and said["light"][1] - said["light"][0] > 60, "a picture, and one that moves"
    assert {name: wrong for name, wrong in said["geometry"].items() if wrong} == {}
    assert any("“a red desert”" in event and "0:0" in event for event in said["events"]), said["events"]
    assert said["sideways"] <= 0
    assert said["complaints"] == []
