"""The commands around weights: what a checkpoint's faults look like on the command line, and one card's figures."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from typer.testing import CliRunner
from worldroom.cli.main import app
from worldroom.models import catalog
from worldroom.models.drive.card import WEIGHTS
from worldroom.models.matrix_game.card import matrix_game_card, tiny
from worldroom.models.matrix_game.load import drawn, load
from worldroom.models.matrix_game.weights import manifest
from worldroom.tests.exported import export_component


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny Matrix-Game as its authors would publish it."""
    root, made, networks = tmp_path_factory.mktemp("checkpoint"), manifest(tiny()), drawn(tiny())
    for name, module in (("transformer", networks.transformer), ("vae", networks.vae)):
        component = made.component(name)
        export_component(component, component.layouts[0], module.state_dict(), root)
    return root


def test_a_whole_checkpoint_is_checked_by_its_headers(checkpoint: Path) -> None:
    code, out = run("cards", "check", "matrix-game-tiny-random", str(checkpoint), "--json")
    report = json.loads(out)
    assert code == 0 and report["ok"]
    assert [(c["component"], c["layout"], c["parameters"]) for c in report["components"]] == [
        ("transformer", "original", 73760),
        ("vae", "original", 61887),
    ]


def test_a_lone_file_is_recognised(checkpoint: Path) -> None:
    code, out = run("cards", "check", "matrix-game-tiny-random", str(checkpoint / "Wan2.1_VAE.pth"), "--json")
    assert code == 0 and [c["component"] for c in json.loads(out)["components"]] == ["vae"]


def test_the_wrong_card_is_one_line_per_component_and_status_1(checkpoint: Path) -> None:
    code, out = run("cards", "check", "matrix-game-2-universal", str(checkpoint), "--json")
    problems = {c["component"]: c["problem"] for c in json.loads(out)["components"]}
    assert code == 1
    first = "model.blocks.10.action_model.img_attn_k_norm.weight"
    assert f"key '{first}' is missing (976 in all)" in problems["transformer"]
    assert problems["image_encoder"].endswith("component 'image_encoder' is missing: looked for image_encoder")
    assert "has shape" in problems["vae"] or "is missing" in problems["vae"]


def test_no_such_path_and_cards_without_a_manifest() -> None:
    code, out = run("cards", "check", "matrix-game-2-gta", "/nowhere")
    assert code == 2 and "no checkpoint at /nowhere: `worldroom cards pull matrix-game-2-gta` fetches it" in out
    code, out = run("cards", "pull", "toy")
    assert code == 2 and "card 'toy' carries its own weights" in out


def test_what_was_exported_plays_as_what_was_drawn(checkpoint: Path) -> None:
    card = matrix_game_card(tiny())
    loaded = load(tiny(), card, card.recipe.default, checkpoint)
    assert len(loaded.weights) == 64
    again, first = drawn(tiny()), loaded.runtime._networks  # type: ignore[attr-defined]
    for key, value in again.transformer.state_dict().items():
        assert torch.equal(first.transformer.state_dict()[key], value)


def test_show_tells_bytes_licence_loops_and_price() -> None:
    code, out = run("cards", "show", "matrix-game-2-gta", "--json")
    row = json.loads(out)
    assert code == 0 and row["licence"] == "MIT; Apache-2.0"
    assert row["loops"] == ["chunk_rollout: encode denoise commit decode"]
    assert row["program"] == [
        "prompt_encode: device",
        "chunk_rollout: device",
        "decode: device",
        "encode: encoders",
    ]
    assert row["session_bytes"] == row["cache_bytes_per_session"] > 2 * 10**9
    assert row["flop_per_chunk"] > 10**13 and "bench model matrix-game-2-gta" in row["price"]


def test_bench_model_reports_every_step_of_a_chunk() -> None:
    code, out = run("bench", "model", "toy", "--chunks", "3", "--json")
    (report,) = json.loads(out)["models"]
    assert code == 0 and {f["kind"]: f["per_chunk"] for f in report["figures"]} == {
        "denoise": 2.0,
        "commit": 1.0,
        "decode": 1.0,
    }
    assert report["fps"] > 0 and report["chunks"] == 3 and report["device"] == "cpu"
    code, out = run("bench", "model", "toy", "--chunks", "1", "--rows", "1", "--rows", "4", "--repeats", "3", "--json")
    batches = json.loads(out)["models"][0]["batches"]
    assert code == 0 and [(figure["kind"], figure["rows"]) for figure in batches] == [
        (kind, rows) for kind in ("denoise", "commit", "decode") for rows in (1, 4)
    ]
    assert all(figure["together"]["min_ms"] <= figure["together"]["median_ms"] for figure in batches)
    code, out = run("bench", "model", "toy", "--precision", "fp8")
    assert code == 2 and "does not allow precision 'fp8'" in " ".join(out.split())
    code, out = run("bench", "model", "toy", "--precision", "fp7")
    assert code == 2 and "'fp7' is not a valid Precision" in " ".join(out.split())


def test_drive_is_counted_on_its_own_networks() -> None:
    code, out = run("cards", "show", "drive", "--json")
    row = json.loads(out)
    weights = catalog.card("drive").components
    files = sum((WEIGHTS / part.file).stat().st_size for part in weights)
    assert code == 0
    assert 0.9 * files < row["weight_bytes"] < 2.5 * files, "16-bit files, 32-bit or 16-bit in memory"
    assert row["session_bytes"] > row["cache_bytes_per_session"] > 0
    with safe_open(WEIGHTS / "transformer.safetensors", framework="pt") as file:
        matrices = [file.get_slice(key).get_shape() for key in file.keys()]  # noqa: SIM118
    once = sum(2 * shape[0] * shape[1] for shape in matrices if len(shape) == 2)
    assert row["flop_per_chunk"] > once, "every matrix multiplies at least one token"
