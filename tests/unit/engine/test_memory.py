"""What this machine has is read from the kernel, within the bounds of a container."""

from pathlib import Path

from worldroom.engine.device.memory import host_memory
from worldroom.models.holding import Memory

MEMINFO = "MemTotal:  16000 kB\nMemFree:  1000 kB\nMemAvailable:  8000 kB\nHugePages_Total:  0\n"


def test_a_machine_and_a_container_on_it(tmp_path: Path) -> None:
    meminfo, group = tmp_path / "meminfo", tmp_path / "group"
    meminfo.write_text(MEMINFO)
    group.mkdir()
    assert host_memory(meminfo, group) == Memory(16000 * 1024, 8000 * 1024)
    (group / "memory.max").write_text("max\n")
    assert host_memory(meminfo, group) == Memory(16000 * 1024, 8000 * 1024)
    (group / "memory.max").write_text("4096000\n")
    (group / "memory.current").write_text("3000000\n")
    (group / "memory.stat").write_text("anon 1000000\ninactive_file 1500000\n")
    assert host_memory(meminfo, group) == Memory(4096000, 2596000)


def test_this_machine_has_some() -> None:
    memory = host_memory()
    assert 0 < memory.free <= memory.total
