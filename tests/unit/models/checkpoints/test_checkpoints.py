"""Checkpoints in every public layout: found, checked, loaded, exported; each way to be wrong is one clear line."""

import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from worldroom.models.checkpoints import load
from worldroom.models.checkpoints.check import check, find
from worldroom.models.checkpoints.manifest import CheckpointLayout, ComponentManifest, Manifest
from worldroom.models.checkpoints.names import SAME_NAMES, KeyMap, Rename
from worldroom.models.weights import WeightsError
from worldroom.tests.exported import export_component, write_indexes


class Net(nn.Module):
    """Two blocks of one linear layer and a head, as public networks nest them."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))
        self.head = nn.Linear(3, 2, bias=False)


def expects() -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        return load.shapes(Net())


THEIRS = KeyMap((Rename("model.layers.{}.{}", "blocks.{}.{}"), Rename("model.{*}", "{*}")))
ORIGINAL = CheckpointLayout(
    "original", "net.pt", THEIRS, repo="acme/net", unwrap=("generator_ema", "generator"), ignore=("ema.*",)
)
SAFE = CheckpointLayout("safetensors", "net.safetensors", SAME_NAMES)
FOLDER = CheckpointLayout("diffusers", "transformer", SAME_NAMES)
NET = ComponentManifest("transformer", expects, (ORIGINAL, SAFE, FOLDER), config={"_class_name": "Net"})
MANIFEST = Manifest("net", (NET,), "Apache-2.0")


def weights() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return Net().state_dict()


def problem(root: Path) -> str:
    (finding,) = check(MANIFEST, root)
    assert finding.found is None and "\n" not in finding.problem
    return finding.problem


@pytest.mark.parametrize("layout", [ORIGINAL, SAFE, FOLDER])
@pytest.mark.parametrize("shard", [10**9, 40])
def test_a_round_trip_through_every_layout_keeps_every_bit(
    tmp_path: Path, layout: CheckpointLayout, shard: int
) -> None:
    export_component(NET, layout, weights(), tmp_path, shard)
    module = Net()
    found = load.load_component(NET, tmp_path, module)
    assert (found.layout.name, found.parameters, found.dtypes) == (layout.name, 30, ("float32",))
    assert all(torch.equal(module.state_dict()[key], value) for key, value in weights().items())


def test_one_digest_whatever_the_layout(tmp_path: Path) -> None:
    digests = set()
    for layout in (ORIGINAL, SAFE, FOLDER):
        export_component(NET, layout, weights(), tmp_path / layout.name, 40)
        digests.add(load.digest([find(NET, tmp_path / layout.name)]))
    assert len(digests) == 1


def test_a_lone_file_finds_its_layout_by_its_keys(tmp_path: Path) -> None:
    file = tmp_path / "download.pt"
    torch.save(
        {"generator": {f"model.layers.{k[7:]}" if k[0] == "b" else f"model.{k}": v for k, v in weights().items()}}, file
    )
    (finding,) = check(MANIFEST, file)
    assert finding.found is not None and finding.found.layout.name == "original"


def test_key_maps_work_both_ways_and_refuse_different_holes() -> None:
    assert THEIRS.to_ours("model.layers.11.weight") == "blocks.11.weight"
    assert THEIRS.to_public("blocks.11.weight") == "model.layers.11.weight"
    assert THEIRS.to_public("head.weight") == "model.head.weight"
    with pytest.raises(ValueError, match="different holes"):
        Rename("a.{}", "b")


@pytest.mark.parametrize("modular", [False, True])
def test_a_pipelines_index_names_the_folder(tmp_path: Path, modular: bool) -> None:
    export_component(NET, CheckpointLayout("diffusers", "dit", SAME_NAMES), weights(), tmp_path)
    write_indexes(MANIFEST, {"transformer": "dit"}, tmp_path)
    (tmp_path / ("model_index.json" if modular else "modular_model_index.json")).unlink()
    if not modular:
        with pytest.raises(WeightsError, match="component 'transformer' is in 'transformer', which is not here"):
            find(NET, tmp_path)
        return
    assert find(NET, tmp_path).path == tmp_path / "dit"


def test_a_modular_index_that_points_elsewhere_says_where(tmp_path: Path) -> None:
    entry = ["diffusers", "Net", {"pretrained_model_name_or_path": "acme/net", "subfolder": "dit"}]
    (tmp_path / "modular_model_index.json").write_text(json.dumps({"transfomer": entry}))
    assert problem(tmp_path).endswith("component 'transformer' is missing; nearest is 'transfomer'")
    (tmp_path / "modular_model_index.json").write_text(json.dumps({"transformer": entry}))
    assert problem(tmp_path).endswith("component 'transformer' is in 'dit', which is not here (it lives in 'acme/net')")


def test_faults_of_keys_and_shapes_name_the_key_the_file_and_the_nearest_name(tmp_path: Path) -> None:
    file = tmp_path / "net.safetensors"
    good = weights()
    save_file({("blocks.0.wieght" if k == "blocks.0.weight" else k): v for k, v in good.items()}, file)
    assert (
        problem(tmp_path)
        == f"weights file {file}: key 'blocks.0.weight' is missing (1 in all); nearest is 'blocks.0.wieght'"
    )
    save_file({**good, "head.bias": torch.zeros(2)}, file)
    assert (
        problem(tmp_path)
        == f"weights file {file}: key 'head.bias' is not expected (1 in all); nearest is 'head.weight'"
    )
    save_file({**good, "head.weight": torch.zeros(2, 4)}, file)
    assert problem(tmp_path) == f"weights file {file}: key 'head.weight' has shape (2, 4), expected (2, 3)"
    save_file({**good, "head.weight": torch.zeros(2, 3, dtype=torch.int64)}, file)
    assert problem(tmp_path).endswith("key 'head.weight' has dtype int64, expected float32, bfloat16, float16")
    file.write_bytes(file.read_bytes()[:100])
    assert "is truncated or damaged at 100 bytes" in problem(tmp_path)
    file.unlink()
    assert problem(tmp_path) == (
        f"weights file {tmp_path}: component 'transformer' is missing: looked for net.pt, net.safetensors, transformer"
    )


def test_nan_is_refused_when_values_are_read(tmp_path: Path) -> None:
    save_file({**weights(), "head.weight": torch.full((2, 3), torch.nan)}, tmp_path / "net.safetensors")
    with pytest.raises(WeightsError, match=r"key 'head\.weight' holds NaN or infinity"):
        load.load_component(NET, tmp_path, Net())


class _Code:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('code ran')",)


def test_code_in_a_pt_file_never_runs(tmp_path: Path) -> None:
    (tmp_path / "net.pt").write_bytes(pickle.dumps(_Code()))
    assert "wants to run code when opened and is refused" in problem(tmp_path)
    assert "wants to run code when opened and is refused" in problem(tmp_path)
    torch.save({"optimizer": 3, "generatr": {}}, tmp_path / "net.pt")
    assert problem(tmp_path).endswith("entry 'generator_ema' is missing; nearest is 'generatr'")


def test_shards_must_match_their_index(tmp_path: Path) -> None:
    folder = export_component(NET, FOLDER, weights(), tmp_path, 40)
    index = folder / "diffusion_pytorch_model.safetensors.index.json"
    stated = json.loads(index.read_text())
    first = stated["weight_map"]["blocks.0.weight"]
    stated["weight_map"]["blocks.7.weight"] = first
    index.write_text(json.dumps(stated))
    assert f"{first}: key 'blocks.7.weight' is missing (1 in all); nearest is 'blocks.0.weight'" in problem(tmp_path)
    stated["weight_map"] = {"blocks.0.weight": "../../secret.safetensors"}
    index.write_text(json.dumps(stated))
    assert "which is not a file beside it" in problem(tmp_path)
    index.write_text("{}")
    assert "is no index of shards" in problem(tmp_path)
