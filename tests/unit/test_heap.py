"""What a process began with is no work for the collector."""

import gc
import subprocess
import sys

from worldroom.engine.heap import set_apart


def test_case_110_the_collector_goes_through_what_came_after_the_start_alone() -> None:
    try:
        set_apart()
        later = [[number] for number in range(1000)]
        assert 1000 < len(gc.get_objects()) < 5000 < gc.get_freeze_count(), len(later)
    finally:
        gc.unfreeze()


READY = """
import asyncio, gc, socket
from types import SimpleNamespace
from rich.console import Console
from worldroom.cli import assemble

class Engine:
    async def start(self): pass
    def cards(self): return ()
    def capacity(self): return ()

spec = SimpleNamespace(tls=None, shows=None, access=SimpleNamespace(base_path=""))
with socket.create_server(("127.0.0.1", 0)) as listener:
    asyncio.run(assemble._warm_up(Engine(), None, listener, Console(stderr=True), spec, None))
print(gc.get_freeze_count())
"""


def test_case_110_a_server_that_is_ready_has_set_its_start_apart() -> None:
    told = subprocess.run([sys.executable, "-c", READY], capture_output=True, text=True, check=True, timeout=60)
    assert int(told.stdout) > 10_000
