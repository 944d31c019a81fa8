"""The page in Debian's Firefox, over WebDriver BiDi: it plays, or says why it cannot, and its layout holds."""

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
def test_firefox_plays_or_says_why_not_and_its_layout_holds(server: str) -> None:
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
    assert "failed" not in said, said
    assert said["worlds"] == ["Toy: a ship of small integers"]
    if said["phase"] == "live":
        assert (said["state"], said["played"]) == ("Live", True)
    else:  # its H.264 is a plugin that Debian does not ship: the page says so and is laid out all the same
        assert (said["phase"], said["title"]) == ("no-h264", "This browser cannot play H.264")
    assert {name: wrong for name, wrong in said["geometry"].items() if wrong} == {}
    assert said["complaints"] == []
