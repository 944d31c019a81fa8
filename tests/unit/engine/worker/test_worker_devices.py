"""Devices as a person names them, and what a worker that shares one may count with."""

from pathlib import Path

import pytest
from worldroom.engine.spec import EngineSpec
from worldroom.engine.worker.devices import BadDevice, WorkerDevice, gpus, named
from worldroom.models.holding import Memory

GB = 10**9
TWO = ("0", "1")


@pytest.mark.parametrize(
    ("asked", "found", "names"),
    [
        ("auto", (), ["cpu"]),
        ("auto", TWO, ["cuda:0", "cuda:1"]),
        ("cuda", TWO, ["cuda:0", "cuda:1"]),
        ("cuda:1, cpu", TWO, ["cuda:1", "cpu"]),
        ("cpu,cpu", (), ["cpu:0", "cpu:1"]),
        ("sim:h200,sim:h200,sim:h100", (), ["sim:h200:0", "sim:h200:1", "sim:h100"]),
    ],
)
def test_names(asked: str, found: tuple[str, ...], names: list[str]) -> None:
    assert [device.name for device in named(asked, found=found)] == names


def test_workers_share_the_cpu() -> None:
    assert named("cuda:0,cpu", workers=3, found=TWO) == (
        WorkerDevice("cuda:0"),
        WorkerDevice("cpu:0", sharers=3),
        WorkerDevice("cpu:1", sharers=3),
        WorkerDevice("cpu:2", sharers=3),
    )


@pytest.mark.parametrize(
    ("asked", "workers", "said"),
    [
        ("cuda:2", 1, "there is no cuda:2: GPUs here are cuda:0, cuda:1"),
        ("gpu", 1, "'gpu' is no device: there are cuda:0, cuda:1, cpu, and sim:NAME"),
        ("cuda:0,cuda:0", 1, "cuda:0 is named twice"),
        ("cuda:0", 2, "2 workers share a CPU, and cuda:0 is none"),
        ("cpu:1", 1, "'cpu:1' is no device"),
    ],
)
def test_what_is_not_there_is_said(asked: str, workers: int, said: str) -> None:
    with pytest.raises(BadDevice, match=said):
        named(asked, workers, TWO)


def test_a_worker_sees_its_own_gpu_alone(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert gpus({}, tmp_path) == ("0", "1", "10")
    assert WorkerDevice("cuda:2").environment({"HOME": "/h"}, tmp_path) == {"HOME": "/h", "CUDA_VISIBLE_DEVICES": "10"}
    assert WorkerDevice("cpu").environment({}, tmp_path) == {"CUDA_VISIBLE_DEVICES": ""}
    hidden = {"CUDA_VISIBLE_DEVICES": "3, GPU-8f1e"}
    assert gpus(hidden, tmp_path) == ("3", "GPU-8f1e")
    assert WorkerDevice("cuda:1").environment(hidden, tmp_path) == {"CUDA_VISIBLE_DEVICES": "GPU-8f1e"}


def test_workers_that_share_a_machine_do_not_each_count_all_of_it() -> None:
    spec, machine = EngineSpec(share_cap=0.9), Memory(64 * GB, 60 * GB)
    alone, shared = WorkerDevice("cpu"), WorkerDevice("cpu:0", sharers=4)
    assert alone.part_of(spec, machine, cores=2) == spec
    part = shared.part_of(spec, machine, cores=2)
    assert part.memory == 15 * GB
    assert part.share_cap == 0.45, "four workers have two cores"
    assert shared.part_of(spec, machine, cores=8).share_cap == 0.9
    assert shared.part_of(EngineSpec(memory=8 * GB), machine, cores=8).memory == 2 * GB
    assert shared.part_of(spec, machine, cores=8).weights_memory is None, "its memory is the host's"
    gpu = WorkerDevice("cuda:0")
    assert gpu.part_of(spec, machine, cores=8, workers=2).weights_memory == 15 * GB
    assert gpu.part_of(EngineSpec(weights_memory=GB), machine, cores=8, workers=4).weights_memory == GB // 4
