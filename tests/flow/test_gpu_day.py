"""The command for the day there is a GPU, on tiny cards: every stage runs and says its figures; a bad one is said."""

import json
import subprocess
from pathlib import Path

from worldroom.cli.bench import gpu

ROOT = Path(__file__).resolve().parents[2]


def test_every_stage_of_the_dry_run_runs_and_says_its_figures() -> None:
    for stage in gpu.dry_run():
        if stage.name in ("kernels", "latency", "parity"):
            continue  # minutes of them, and tests of their own; the plan is looked at below
        ok, said, result = gpu.run(stage, stage.seconds)
        assert ok, (stage.name, said)
        assert "a chunk" in said or "sessions hold" in said, said
        assert json.loads(result)


def test_a_stage_that_fails_or_is_too_slow_is_said_and_is_no_end() -> None:
    ok, said, result = gpu.run(gpu.Stage("x", ("bench", "model", "no-such-card"), 60), 60)
    assert (ok, result) == (False, b"null") and "no card 'no-such-card'" in said
    assert gpu.run(gpu.Stage("x", ("bench", "kernels"), 2), 1.0)[:2] == (False, "it took longer than 1 s")
    assert gpu.run(gpu.Stage("x", (), 2), 0.0)[1] == "no time was left for it"


def test_the_plan_fits_ten_minutes_and_names_what_it_should_answer() -> None:
    names = " ".join(stage.name for stage in gpu.planned(("self-forcing-1.3b", "longlive-1.3b")))
    for wanted in ("kernels", "parity", "price longlive-1.3b fp8", "light decoder", "sessions", "latency"):
        assert wanted in names
    assert {stage.name.split()[0] for stage in gpu.dry_run()} >= {"kernels", "parity", "price", "sessions", "latency"}
    assert gpu.MINUTES < 10, "stages share this time, whatever each may take"


def test_the_script_is_one_command() -> None:
    script = ROOT / "tests" / "gpu" / "run.sh"
    subprocess.run(["sh", "-n", script], check=True)
    assert script.stat().st_mode & 0o111


def test_figures_are_told_in_a_line() -> None:
    kernels = {"triton": "3", "figures": [{"error": 1e-6, "ran": "triton"}, {"error": 2e-3, "ran": "triton"}]}
    assert gpu.told(kernels) == "2 kernels by triton (triton 3), worst error 0.002"
    checks = {"ok": False, "verdicts": [{"ok": True}, {"ok": False}]}
    assert gpu.told(checks) == "1 of 2 checks hold: NOT ok"
    latency = {"total_ms": {"p50": 42.2, "p95": 64.5, "count": 10}}
    assert gpu.told({"latency": latency}) == "key to picture p50 42, p95 64 ms of 10 presses"
    assert gpu.told({"held": 2, "fps": 16, "refused": "no_compute"}) == "2 sessions hold 16 fps; then: no_compute"
