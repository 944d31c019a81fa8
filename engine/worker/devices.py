"""The devices that workers are pinned to, as a person names them. Imports no tensor library.

auto        every GPU, else the CPU
cuda:N      the Nth GPU that this process may see; its worker sees no other. `cuda`: all of them
cpu         this machine; workers that share it divide its memory and its time among themselves
sim:NAME    a device of `worldroom simulate` that computes nothing: a name or a file
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from ...models.holding import Memory
from ..spec import EngineSpec

AUTO, CPU, CUDA, SIMULATED = "auto", "cpu", "cuda", "sim"
VISIBLE = "CUDA_VISIBLE_DEVICES"
DEV = Path("/dev")


class BadDevice(ValueError):
    """There is no such device here; one line for a person."""


class WorkerDevice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One worker's device. `sharers`: how many workers it is divided among. `sheet`: of a simulated one."""

    name: str = CPU
    sharers: int = 1
    sheet: str = ""

    @property
    def gpu(self) -> bool:
        return self.name.startswith(CUDA)

    def environment(self, inherited: Mapping[str, str] = os.environ, dev: Path = DEV) -> dict[str, str]:
        """Of its worker, which sees this GPU alone, or none."""
        ids = gpus(inherited, dev)
        return {**inherited, VISIBLE: ids[int(self.name.partition(":")[2])] if self.gpu else ""}

    def part_of(self, spec: EngineSpec, memory: Memory, cores: int, workers: int = 1) -> EngineSpec:
        """What this worker may count with: its part of a device that others share, and of host memory for weights.
        `memory` is the machine's.
        """
        if self.gpu:
            away = memory.free // 2 if spec.weights_memory is None else spec.weights_memory
            spec = replace(spec, weights_memory=away // workers)
        if self.sharers == 1:
            return spec
        each = (spec.memory or memory.free) // self.sharers
        return replace(spec, memory=each, share_cap=spec.share_cap * min(1.0, cores / self.sharers))


def gpus(environ: Mapping[str, str] = os.environ, dev: Path = DEV) -> tuple[str, ...]:
    """What names each GPU for `CUDA_VISIBLE_DEVICES`; those that are hidden from this process do not count."""
    if VISIBLE in environ:
        return tuple(part.strip() for part in environ[VISIBLE].split(",") if part.strip())
    return tuple(str(number) for number in sorted(int(path.name[6:]) for path in dev.glob("nvidia[0-9]*")))


def named(asked: str, workers: int = 1, found: Sequence[str] | None = None) -> tuple[WorkerDevice, ...]:
    """The devices of a list, in its order. `workers` share the CPU, where it is one of them. Raises `BadDevice`."""
    there = tuple(f"{CUDA}:{number}" for number in range(len(gpus() if found is None else found)))
    names: list[str] = []
    for name in (part.strip() for part in asked.split(",")):
        match name.partition(":")[0]:
            case "auto":
                names += there or (CPU,)
            case "cuda":
                names += _gpus(name, there)
            case "cpu" if name == CPU:
                names.append(name)
            case "sim" if name != SIMULATED:
                names.append(name)
            case _:
                raise BadDevice(f"'{name}' is no device: there are {', '.join((*there, CPU))}, and sim:NAME")
    if twice := next((name for name in names if name.startswith(CUDA) and names.count(name) > 1), None):
        raise BadDevice(f"{twice} is named twice: a GPU has one worker")
    if workers > 1:
        if CPU not in names:
            raise BadDevice(f"{workers} workers share a CPU, and {', '.join(names)} is none: a GPU has one worker")
        at = names.index(CPU)
        names[at:at] = [CPU] * (workers - names.count(CPU))
    return _numbered(names)


def _gpus(name: str, there: Sequence[str]) -> tuple[str, ...]:
    wanted = tuple(there) if name == CUDA else (name,)
    if not there or not set(wanted) <= set(there):
        here = f"GPUs here are {', '.join(there)}" if there else "this process sees no GPU"
        raise BadDevice(f"there is no {name}: {here}")
    return wanted


def _numbered(names: Sequence[str]) -> tuple[WorkerDevice, ...]:
    """Devices of one name are told apart by a number."""
    made = []
    for index, name in enumerate(names):
        several = names.count(name)
        kind, _, sheet = name.partition(":")
        short = f"{kind}:{Path(sheet).stem}" if kind == SIMULATED else name
        told = short if several == 1 else f"{short}:{names[:index].count(name)}"
        made.append(WorkerDevice(told, several if name == CPU else 1, sheet if kind == SIMULATED else ""))
    return tuple(made)


def default_device() -> WorkerDevice:
    """The first of this machine."""
    return named(AUTO)[0]
