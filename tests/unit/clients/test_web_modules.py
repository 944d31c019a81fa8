"""The page's pure modules have tests of their own, run by node's test runner."""

import shutil
import subprocess
from pathlib import Path

import pytest
import worldroom.clients.web

WEB = Path(worldroom.clients.web.__file__).parent


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_modules_of_the_page() -> None:
    tests = sorted(str(path) for path in (WEB / "test").glob("*.test.js"))
    done = subprocess.run(["node", "--test", *tests], cwd=WEB, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
