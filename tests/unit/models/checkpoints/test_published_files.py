"""Weight files as programs really publish them: prefixes, wrappers, scaled fp8, files larger than memory, folders."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from worldroom.models.checkpoints.check import check, find
from worldroom.models.checkpoints.load import load_component, shapes
from worldroom.models.checkpoints.manifest import (
    TEXT_ENCODER_FILES,
    TOKENIZER,
    TOKENIZER_FILES,
    UMT5,
    CheckpointLayout,
    ComponentManifest,
    FolderManifest,
    Manifest,
)
from worldroom.models.checkpoints.names import SAME_NAMES
from worldroom.models.checkpoints.stored import open_stored
from worldroom.models.wan.card import SPECS
from worldroom.models.wan.weights import manifest as wan_manifest
from worldroom.models.weights import WeightsError


def net() -> nn.Module:
    return nn.ModuleDict({"blocks": nn.ModuleList(nn.Linear(4, 4) for _ in range(2)), "head": nn.Linear(4, 2)})


def part(file: str) -> ComponentManifest:
    layout = CheckpointLayout("original", file, SAME_NAMES, unwrap=("generator",), prefixes=("model.",))
    return ComponentManifest("transformer", lambda: shapes(net()), (layout,))


def weights() -> dict[str, Tensor]:
    torch.manual_seed(5)
    return dict(net().state_dict())


def saved(root: Path, table: dict[str, Tensor], file: str) -> Path:
    if file.endswith(".pt"):
        torch.save({"generator": table}, root / file)
    else:
        save_file(table, root / file)
    return root


LEADS = ["", "model.", "_orig_mod.", "module.", "module.model.", "model._orig_mod.", "model._fsdp_wrapped_module."]


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("file", ["net.pt", "net.safetensors"])
def test_case_78_keys_are_found_with_and_without_every_prefix(tmp_path: Path, lead: str, file: str) -> None:
    want, made = weights(), net()
    load_component(part(file), saved(tmp_path, {lead + key: value for key, value in want.items()}, file), made)
    for key, value in made.state_dict().items():
        assert torch.equal(value, want[key])


def test_case_78_wrappers_may_stand_around_each_block(tmp_path: Path) -> None:
    want = weights()
    table = {f"model.{key}".replace("blocks.0.", "blocks.0._fsdp_wrapped_module."): v for key, v in want.items()}
    assert set(find(part("net.pt"), saved(tmp_path, table, "net.pt")).table) == set(want)


@pytest.mark.parametrize("lead", ["", "model.", "model._fsdp_wrapped_module."])
def test_case_71_complaints_name_keys_as_the_file_does(tmp_path: Path, lead: str) -> None:
    table = {lead + key: value for key, value in weights().items()}
    table[f"{lead}blocks.1.wieght"] = table.pop(f"{lead}blocks.1.weight")
    with pytest.raises(WeightsError) as raised:
        find(part("net.pt"), saved(tmp_path, table, "net.pt"))
    assert f"key '{lead}blocks.1.weight' is missing (1 in all); nearest is '{lead}blocks.1.wieght'" in str(raised.value)


def quantised(scale: str, rows: bool, mark: bool) -> dict[str, Tensor]:
    table = {}
    for key, value in weights().items():
        if not key.endswith("weight"):
            table[key] = value
            continue
        most = value.abs().amax(dim=1, keepdim=True) if rows else value.abs().amax()
        by = most / 448
        table[key] = (value / by).to(torch.float8_e4m3fn)
        table[f"{key.removesuffix('weight')}{scale}"] = by
    return table | ({"scaled_fp8": torch.zeros(2).to(torch.float8_e4m3fn)} if mark else {})


@pytest.mark.parametrize(("scale", "rows", "mark"), [("scale_weight", False, True), ("weight_scale", True, False)])
def test_case_99_scaled_fp8_loads_with_its_scales(tmp_path: Path, scale: str, rows: bool, mark: bool) -> None:
    made, want = net(), weights()
    load_component(part("net.safetensors"), saved(tmp_path, quantised(scale, rows, mark), "net.safetensors"), made)
    for key, value in made.state_dict().items():
        assert (value - want[key]).abs().max() <= want[key].abs().max() / 16  # e4m3 has three bits of fraction


def test_case_99_what_is_wrong_with_fp8_is_said_whole(tmp_path: Path) -> None:
    bare = {key: value.to(torch.float8_e4m3fn) for key, value in weights().items()}
    with pytest.raises(WeightsError, match=r"dtype float8_e4m3fn \(fp8 without scales\), expected float32"):
        find(part("net.safetensors"), saved(tmp_path, bare, "net.safetensors"))
    lost = quantised("scale_weight", rows=False, mark=True) | {"foot.scale_weight": torch.ones(1)}
    with pytest.raises(
        WeightsError, match=r"scaled fp8: 'foot\.scale_weight' scales 'foot\.weight', which is not there"
    ):
        find(part("net.safetensors"), saved(tmp_path, lost, "net.safetensors"))
    odd = quantised("scale_weight", rows=False, mark=True) | {"head.scale_weight": torch.ones(3)}
    with pytest.raises(WeightsError, match=r"scaled fp8: 'head.scale_weight' has shape \(3,\)"):
        find(part("net.safetensors"), saved(tmp_path, odd, "net.safetensors"))


def test_case_102_a_file_larger_than_memory_is_checked_by_its_headers(tmp_path: Path) -> None:
    size, hole = 400 << 30, tmp_path / "hole"
    with hole.open("wb") as opened:
        opened.truncate(size)
    storage = torch.UntypedStorage.from_file(str(hole), True, size)
    with torch.serialization.skip_data():  # writes the headers of a file this large, and leaves its values a hole
        torch.save({"generator": {"x": torch.empty(0).set_(storage, 0, (size // 4,))}}, tmp_path / "net.pt")
    assert open_stored(tmp_path / "net.pt", ("generator",))["x"].shape == (size // 4,)


def test_values_of_a_torch_file_are_read_where_they_lie(tmp_path: Path) -> None:
    table = {"wide": torch.zeros(1 << 20), "turned": torch.arange(6.0).reshape(2, 3).T, "part": torch.arange(9)[4:7]}
    torch.save({"generator": table | {"none": torch.zeros(0, 3)}}, tmp_path / "net.pt")
    stored = open_stored(tmp_path / "net.pt", ("generator",))
    assert torch.equal(stored["turned"].read(), torch.arange(6.0).reshape(2, 3).T)
    assert stored["part"].read().tolist() == [4, 5, 6] and stored["none"].read().shape == (0, 3)


FOLDERS = Manifest(
    "net",
    (),
    "Apache-2.0",
    folders=(
        FolderManifest("text_encoder", "acme/net", TEXT_ENCODER_FILES, UMT5, {"d_model": 8}),
        FolderManifest("tokenizer", "acme/net", TOKENIZER_FILES, TOKENIZER),
    ),
)


def folders(root: Path) -> Path:
    for name in ("text_encoder", "tokenizer"):
        (root / name).mkdir()
    (root / "text_encoder" / "config.json").write_text('{"d_model": 8}')
    save_file({"shared.weight": torch.zeros(3, 8)}, root / "text_encoder" / "model.safetensors")
    (root / "tokenizer" / "tokenizer_config.json").write_text("{}")
    (root / "tokenizer" / "tokenizer.json").write_text("{}")
    return root


def problems(root: Path) -> list[str]:
    return [finding.problem for finding in check(FOLDERS, root)]


def test_case_69_folders_that_other_libraries_load_are_whole(tmp_path: Path) -> None:
    assert problems(folders(tmp_path)) == ["", ""]


SPOILT: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: (root / "text_encoder" / "model.safetensors").unlink(), "holds none of model.safetensors, model"),
    (lambda root: (root / "text_encoder" / "config.json").write_text('{"d_model": 9}'), "says d_model = 9, expected 8"),
    (lambda root: (root / "text_encoder" / "config.json").write_text("{"), "is not JSON"),
    (lambda root: (root / "text_encoder" / "model.safetensors").write_bytes(b"x"), "is truncated or damaged"),
    (lambda root: (root / "tokenizer" / "tokenizer.json").unlink(), "holds none of tokenizer.json, spiece.model"),
    (
        lambda root: (root / "tokenizer").rename(root / "tok"),
        "the folder 'tokenizer' is missing: `worldroom cards pull",
    ),
]


@pytest.mark.parametrize(("spoil", "says"), SPOILT)
def test_case_69_what_a_folder_lacks_is_one_line(tmp_path: Path, spoil: Callable[[Path], object], says: str) -> None:
    spoil(folders(tmp_path))
    assert [says in problem for problem in problems(tmp_path) if problem] == [True]


def test_case_69_a_wan_card_pulls_all_that_it_reads() -> None:
    for spec in SPECS.values():
        made = wan_manifest(spec)
        if made is not None:
            assert [(folder.name, folder.repo.partition("/")[0]) for folder in made.folders] == [
                ("text_encoder", "Wan-AI"),
                ("tokenizer", "Wan-AI"),
            ]
            assert json.dumps(dict(made.folders[0].config)) == '{"d_model": 4096}'
