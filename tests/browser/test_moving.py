"""Real network changes under real Chromium and the Python client: one link goes and another comes; a path dies without
a word and is back. Both play on. `pytest -s` prints how soon."""

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
def test_clients_whose_machine_changes_networks_play_on_in_the_same_world() -> None:
    scene = [sys.executable, "-m", "worldroom.tests.browser.moving"]
    done = subprocess.run(["unshare", "--net", *scene], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    print(f"\n{seen}")
    for moved, announced in (seen["told"], True), (seen["silent"], False):
        assert moved["announced"] == announced and moved["same_world"]
        assert moved["resumed"] or not moved["connected_anew"], "the same seat, or the same connection by another way"
    assert seen["silent"]["connected_anew"], "the server has let go of it"
    assert 0 < seen["told"]["chunks_between"] <= 5 * WORLD_FPS, "one second without any network, and the way back"
    assert 0 < seen["silent"]["chunks_between"] <= 10 * WORLD_FPS, "six seconds that nobody tells of, and the way back"
