"""Every kernel builds for four architectures without a GPU, and none of them spills registers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest
from worldroom.kernels import aot

pytest.importorskip("triton")

Row = Mapping[str, object]


@pytest.fixture(scope="module")
def built() -> list[Row]:
    """In a process of its own: this one interprets."""
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "worldroom.kernels.aot", "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)
    assert done.stdout, done.stderr
    rows: list[Row] = json.loads(done.stdout)
    return rows


def test_every_kernel_is_built_for_every_target(built: list[Row]) -> None:
    names = [(row["kernel"], row["label"], row["sm"]) for row in built]
    assert len(set(names)) == len(names) == len(aot.all_builds()) * len(aot.TARGETS)
    assert {row["sm"] for row in built} == {80, 90, 100, 120}


def test_none_spills_and_all_fit(built: list[Row]) -> None:
    assert [row for row in built if row["spilled_bytes"]] == []
    smallest = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024, 120: 99 * 1024}  # shared memory a block may have
    assert [row for row in built if int(str(row["shared_bytes"])) > smallest[int(str(row["sm"]))]] == []


def test_does_not_pretend_to_build_under_the_interpreter() -> None:
    with pytest.raises(RuntimeError, match="TRITON_INTERPRET unset"):
        list(aot.build_all())


def test_kernels_that_promise_the_references_bits_round_after_every_operation(built: list[Row]) -> None:
    exact = [row for row in built if str(row["label"]).startswith("exact")]
    assert {row["kernel"] for row in exact} >= {"noise", "sampler_step"}
    assert [row for row in exact if row["fused"] or row["approximated"]] == []
