"""The commands around weights: what a checkpoint's faults look like on the command line, and one card's figures."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner
from worldroom.cli.checkpoints import checkpoint_of, default_checkpoint
from worldroom.cli.main import app
from worldroom.cli.output import short_bytes, short_count
from worldroom.models import catalog
from worldroom.models.drive.camera import VIEW
from worldroom.models.drive.card import WEIGHTS
from worldroom.models.drive.footprint import account as drive_account
from worldroom.models.matrix_game.card import matrix_game_card
from worldroom.models.matrix_game.load import load, random_networks
from worldroom.models.matrix_game.spec import tiny
from worldroom.models.matrix_game.weights import manifest
from worldroom.tests.exported import export_component


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny Matrix-Game as its authors would publish it."""
    root, made, networks = tmp_path_factory.mktemp("checkpoint"), manifest(tiny()), random_networks(tiny())
    for name, module in (("transformer", networks.transformer), ("vae", networks.vae)):
        component = made.component(name)
        export_component(component, component.layouts[0], module.state_dict(), root)
    return root


def test_case_70_what_was_pulled_into_the_data_folder_is_found(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLDROOM_DATA", str(tmp_path))
    assert checkpoint_of("matrix-game-tiny-random", None) is None
    pulled = default_checkpoint("matrix-game-tiny-random")
    pulled.parent.mkdir()
    pulled.symlink_to(checkpoint)
    assert checkpoint_of("matrix-game-tiny-random", None) == pulled
    assert checkpoint_of("matrix-game-tiny-random", tmp_path) == tmp_path
    code, out = run("cards", "check", "matrix-game-tiny-random", "--json")
    assert code == 0 and json.loads(out)["path"] == str(pulled)


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


def test_options_of_a_card_are_part_of_what_is_checked_and_counted(tmp_path: Path) -> None:
    def parts(*option: str) -> list[str]:
        code, out = run("cards", "check", "self-forcing-1.3b", str(tmp_path), *option, "--json")
        assert code == 1
        return [part["component"] for part in json.loads(out)["components"]]

    assert parts() == ["transformer", "vae", "text_encoder", "tokenizer"]
    assert parts("--option", "decoder=tiny") == ["transformer", "vae", "tiny_decoder", "text_encoder", "tokenizer"]

    def fits(*option: str) -> int:
        counted: int = json.loads(run("cards", "fit", "self-forcing-1.3b", "--device", "h100", "--json", *option)[1])[
            "by_memory"
        ]
        return counted

    assert fits("--option", "decoder=tiny") > fits() > 0, "the light decoder remembers less"
    for command in ("check", "fit", "pull"):
        code, out = run("cards", command, "self-forcing-1.3b", "--option", "decoder=huge")
        assert code == 2 and "Invalid enum value 'huge'" in " ".join(out.split())


def test_no_such_path_and_cards_without_a_manifest() -> None:
    code, out = run("cards", "check", "matrix-game-2-gta", "/nowhere")
    assert code == 2 and "no checkpoint at /nowhere: `worldroom cards pull matrix-game-2-gta` fetches it" in out
    code, out = run("cards", "pull", "toy")
    assert code == 2 and "card 'toy' carries its own weights" in out


def test_what_was_exported_plays_as_what_was_drawn(checkpoint: Path) -> None:
    card = matrix_game_card(tiny())
    loaded = load(tiny(), card, card.recipe.default, checkpoint)
    assert len(loaded.weights) == 64
    again, first = random_networks(tiny()), loaded.runtime.networks  # type: ignore[attr-defined]
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
    passes = {step.name: (step.flop, step.passes) for step in drive_account().steps}
    assert passes.keys() == {"commit_denoise", "decode"}, "one fused pass and one decode a chunk"
    assert row["flop_per_chunk"] == sum(flop * count for flop, count in passes.values())
    assert passes["commit_denoise"] == (pytest.approx(_painted() + _remembered(), rel=0.01), 1)
    assert passes["decode"] == (_decoded(), 1)


def _painted() -> int:
    """FLOPs of a denoise pass: 43 tokens of width 160, 40 of them of the picture, 13 past keys; without `camera`."""
    square, view = 160 * 160, VIEW
    spatial = 43 * 12 * square + 2 * 43 * 43 * 160
    temporal = 43 * 4 * square + 2 * 43 * 13 * 160
    edges = 43 * 96 * 160 + 40 * view * 160 + 40 * 160 * 32 + 40 * 96 * 32
    return 2 * (4 * spatial + 3 * temporal + edges + _conditioned() + 2 * square + _recalled())


def _remembered() -> int:
    """FLOPs of a commit pass: one spatial block, and keys and values for the three temporal ones."""
    square = 160 * 160
    return 2 * (43 * 12 * square + 2 * 43 * 43 * 160 + 3 * 43 * 2 * square + 43 * 96 * 160 + _conditioned())


def _conditioned() -> int:
    """Products of one line: noise level, four keys, look, innovations, their mixing, six modulations."""
    return 160 * (64 + 160 + 4 + 12 + 5 + 160 + 6 * 160)


def _recalled() -> int:
    return 384 * (96 + 4 + 5 + 384 + 384 + 96)


def _decoded() -> int:
    """FLOPs of the decoder's eight convolutions, on 10x16, 20x32 and 40x64 positions."""
    coarse = 9 * 8 * 128 + 2 * 9 * 128 * 128 + 128 * 256
    fine = 2 * 9 * 64 * 64 + 64 * 128
    return 2 * (160 * coarse + 640 * fine + 2560 * 9 * 32 * 12)


def test_list_and_show_count_parameters_alike() -> None:
    listed = json.loads(run("cards", "list", "--json")[1])["cards"]
    assert next(row["parameters"] for row in listed if row["name"] == "drive") == 2_810_450 + 755_412
    row = json.loads(run("cards", "show", "drive", "--json")[1])
    assert row["parameters"] == 2_810_450 + 755_412
    assert row["components"][1:3] == [
        "autoencoder: pictures and latents, 755,412 parameters, Apache-2.0",
        "text: free text to a look, Apache-2.0",
    ]


def test_at_80_columns_no_name_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out = run("cards", "list")
    lines = out.splitlines()
    assert code == 0 and max(map(len, lines)) <= 80 and "…" not in out
    assert {line.split()[0] for line in lines if line.strip()} >= set(catalog.names())
    (drive,) = (line.split() for line in lines if line.split()[:1] == ["drive"])
    assert drive == ["drive", "3.57", "M", "128x80", "24", "[1],", "2,", "3,", "4"]


def test_numbers_for_people() -> None:
    assert [short_count(n) for n in (0, 999, 3_565_862, 20_096_294_451)] == ["0", "999", "3.57 M", "20.1 G"]
    assert [short_bytes(n) for n in (64, 999, 1_981_440, 7_925_760, 5 * 2**30)] == [
        "64 B",
        "999 B",
        "1.89 MiB",
        "7.56 MiB",
        "5.00 GiB",
    ]
