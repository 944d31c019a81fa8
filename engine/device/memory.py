"""How much memory this machine's devices have and how much of it is free: the GPU's where there is one, else the RAM.

RAM is what the kernel says can be had without swapping, within the bounds of a container.
"""

import os
import sys
from pathlib import Path

from ...models.holding import Memory

MEMINFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")


def device_memory() -> Memory:
    """Of the device that cards are loaded on. A GPU is seen where a tensor library is loaded."""
    if "torch" in sys.modules:
        import torch

        if torch.cuda.is_available():
            free, total = torch.cuda.mem_get_info()
            return Memory(total, free)
    return host_memory()


def host_memory(meminfo: Path = MEMINFO, group: Path = GROUP) -> Memory:
    """Of this machine, or of the container it is run in."""
    if not meminfo.is_file():
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return Memory(total, total)
    said = {name: int(rest.split()[0]) * 1024 for name, rest in _pairs(meminfo, ":")}
    machine = Memory(said["MemTotal"], said["MemAvailable"])
    bound = _read(group / "memory.max")
    if not bound.isdigit():
        return machine
    reclaimable = int(dict(_pairs(group / "memory.stat", " ")).get("inactive_file", "0"))
    used = int(_read(group / "memory.current") or "0") - reclaimable
    return Memory(min(machine.total, int(bound)), min(machine.free, int(bound) - used))


def _read(file: Path) -> str:
    return file.read_text().strip() if file.is_file() else ""


def _pairs(file: Path, between: str) -> list[tuple[str, str]]:
    lines = (line.partition(between) for line in _read(file).splitlines())
    return [(name, rest.strip()) for name, _, rest in lines if rest.strip()]
