"""A card as diffusers' modular index: diffusers reads it and writes it back the same, our import finds its parts."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner
from worldroom.cli.main import app
from worldroom.models import catalog
from worldroom.models.checkpoints.check import locate
from worldroom.models.checkpoints.manifest import Manifest
from worldroom.models.checkpoints.modular import INDEX, modular_index, write_modular_index
from worldroom.models.weights import WeightsError

CARDS = ("wan-t2v-1.3b", "anyflow-far-1.3b")


def manifest(name: str) -> Manifest:
    family, card = catalog.family(name)
    made = family.manifest(card)
    assert made is not None
    return made


def entries(path: Path) -> dict[str, Any]:
    return {name: entry for name, entry in json.loads(path.read_text()).items() if isinstance(entry, list)}


@pytest.mark.parametrize("name", CARDS)
def test_diffusers_reads_it_and_writes_the_same_parts_back(name: str, tmp_path: Path) -> None:
    modular = pytest.importorskip("diffusers.modular_pipelines")
    ours = write_modular_index(catalog.card(name), manifest(name), tmp_path / "ours")
    named = entries(ours)

    class Blocks(modular.ModularPipelineBlocks):  # type: ignore[misc,name-defined]
        model_name: ClassVar[str] = "worldroom"
        block_classes: ClassVar[list[Any]] = []
        inputs: ClassVar[list[Any]] = []
        expected_components: ClassVar[list[Any]] = [modular.ComponentSpec(name=part) for part in named]

    pipeline = modular.ModularPipeline(blocks=Blocks(), pretrained_model_name_or_path=str(ours.parent))
    pipeline.save_pretrained(str(tmp_path / "theirs"), overwrite_modular_index=False)
    theirs = entries(tmp_path / "theirs" / INDEX)
    assert set(theirs) == set(named)
    for part, (_, _, where) in named.items():
        assert theirs[part][2] == where


@pytest.mark.parametrize("name", CARDS)
def test_our_own_import_finds_what_it_names(name: str, tmp_path: Path) -> None:
    made = manifest(name)
    write_modular_index(catalog.card(name), made, tmp_path)
    for component in made.components:
        if component.name in entries(tmp_path / INDEX):
            (tmp_path / component.name).mkdir()
            assert locate(component, tmp_path)[1] == tmp_path / component.name


def test_it_says_how_the_weights_may_be_run() -> None:
    card = catalog.card("wan-t2v-1.3b")
    says = modular_index(card, manifest(card.name))["_worldroom"]
    assert isinstance(says, dict)
    assert (says["card"], says["method"], says["loop"]) == ("wan-t2v-1.3b", "flow", "diffusion_denoise")
    assert [len(levels) for levels in says["sigmas"]] == list(card.recipe.steps_allowed())


def test_a_card_of_which_diffusers_loads_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="nothing of this card is published in a layout that diffusers loads"):
        write_modular_index(catalog.card("wan-t2v-1.3b"), Manifest("wan-t2v-1.3b", (), "none"), tmp_path)


def test_the_command_writes_it(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["cards", "export", "wan-t2v-1.3b", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.output)["components"]) == {"transformer", "vae", "text_encoder", "tokenizer"}
    refused = CliRunner().invoke(app, ["cards", "export", "toy", str(tmp_path)])
    assert refused.exit_code == 2
