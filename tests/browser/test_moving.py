"""A real network change in real Chromium: one link goes, another comes, the page plays on. `pytest -s` prints it."""

import json
import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.browser
WORLD_FPS = 12
MISSING = [tool for tool in ("ip", "unshare", "chromium") if shutil.which(tool) is None]


@pytest.mark.skipif(bool(MISSING) or os.geteuid() != 0, reason=f"needs root and {MISSING or 'nothing else'}")
def test_a_page_whose_machine_changes_networks_plays_on_in_the_same_world() -> None:
    scene = [sys.executable, "-m", "worldroom.tests.browser.moving"]
    done = subprocess.run(["unshare", "--net", *scene], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    moved = json.loads(done.stdout)
    print(f"\n{moved}")
    assert moved["announced"] and moved["connected_anew"]
    assert moved["same_world"] and moved["resumed"]
    assert 0 < moved["chunks_between"] <= 5 * WORLD_FPS, "one second without any network, and the way back"
