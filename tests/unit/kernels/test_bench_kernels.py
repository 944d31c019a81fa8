"""`worldroom bench kernels` on a CPU in its short form: every operation is there, right, and says what ran."""

from __future__ import annotations

import msgspec
from typer.testing import CliRunner
from worldroom.cli.bench.kernels import KernelReport
from worldroom.cli.main import app

OPERATIONS = {
    "norm_modulate", "qk_norm_rope", "chunk_attention", "sampler_step", "noise", "frames_to_yuv", "invariant_matmul",
    "invariant_reduce",
}  # fmt: skip
BOUNDS = {"float32": 2e-6, "bfloat16": 2e-2}


def test_one_command_says_how_right_and_how_fast() -> None:
    done = CliRunner().invoke(app, ["bench", "kernels", "--repeats", "3", "--json"])
    assert done.exit_code == 0, done.output
    report = msgspec.json.decode(done.stdout, type=KernelReport)
    assert {figure.operation.partition(",")[0] for figure in report.figures} == OPERATIONS
    assert [figure for figure in report.figures if figure.error > BOUNDS[figure.dtype]] == []
    assert all(figure.ran == "torch" and figure.reason for figure in report.figures)
    assert all(0 < figure.chosen.min_ms <= figure.chosen.median_ms <= figure.chosen.max_ms for figure in report.figures)
    assert {figure.operation for figure in report.figures if figure.sdpa} == {
        f"chunk_attention, {stored} past" for stored in ("float32", "bfloat16", "int8", "float8_e4m3fn")
    }
