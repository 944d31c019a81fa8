"""Pulling from a hub: the real client against a small hub on loopback that can break off, damage and forget files."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from safetensors.torch import save
from torch import ones, zeros
from worldroom.models.checkpoints.check import find
from worldroom.models.checkpoints.manifest import CheckpointLayout, ComponentManifest, Manifest
from worldroom.models.checkpoints.names import SAME_NAMES
from worldroom.models.checkpoints.pull import Hub, PullError, pull
from worldroom.tests.fake_hub import COMMIT, FakeHub, hub_of

WEIGHTS = save({"head.weight": ones(64, 64)})
CONFIG = b'{"_class_name": "Net"}'
FILES = {"net.safetensors": WEIGHTS, "vae/config.json": CONFIG, "vae/model.safetensors": save({"w": zeros(2)})}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    with hub_of({"acme/net": dict(FILES)}) as fake:
        yield fake


def manifest(file: str = "net.safetensors") -> Manifest:
    net = ComponentManifest(
        "net", lambda: {"head.weight": (64, 64)}, (CheckpointLayout("safetensors", file, SAME_NAMES, repo="acme/net"),)
    )
    vae = ComponentManifest(
        "vae", lambda: {"w": (2,)}, (CheckpointLayout("diffusers", "vae", SAME_NAMES, repo="acme/net"),)
    )
    return Manifest("net", (net, vae), "Apache-2.0")


def test_pulls_files_and_folders_verifies_them_and_writes_down_what_it_pulled(hub: FakeHub, tmp_path: Path) -> None:
    said: list[str] = []
    record = pull(manifest(), tmp_path, Hub(hub.endpoint), said.append)
    assert {file.file for file in record.files} == set(FILES)
    assert record.files[0].digest == hashlib.sha256(WEIGHTS).hexdigest() and record.files[0].revision == COMMIT
    assert said[0] == f"acme/net: net.safetensors, {len(WEIGHTS):,} bytes"
    assert json.loads((tmp_path / "pulled.json").read_text())["licence"] == "Apache-2.0"
    assert find(manifest().components[0], tmp_path).parameters == 64 * 64


def test_what_is_there_and_whole_is_not_pulled_again(hub: FakeHub, tmp_path: Path) -> None:
    pull(manifest(), tmp_path, Hub(hub.endpoint), lambda line: None)
    hub.gets.clear()
    (tmp_path / "net.safetensors").write_bytes(b"torn")
    pull(manifest(), tmp_path, Hub(hub.endpoint), lambda line: None)
    assert [name for name, _ in hub.gets] == ["net.safetensors"]
    assert (tmp_path / "net.safetensors").read_bytes() == WEIGHTS


def test_a_broken_download_goes_on_where_it_stopped(hub: FakeHub, tmp_path: Path) -> None:
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    (tmp_path / f"net.safetensors.{digest[:16]}.part").write_bytes(WEIGHTS[:1000])
    pull(manifest(), tmp_path, Hub(hub.endpoint), lambda line: None)
    assert hub.gets[0] == ("net.safetensors", "bytes=1000-")
    assert (tmp_path / "net.safetensors").read_bytes() == WEIGHTS
    assert list(tmp_path.glob("*.part")) == []


def test_a_damaged_file_is_deleted_and_said(hub: FakeHub, tmp_path: Path) -> None:
    hub.stated["net.safetensors"] = WEIGHTS[:-1] + b"x"
    with pytest.raises(PullError, match=r"acme/net: net\.safetensors arrived damaged"):
        pull(manifest(), tmp_path, Hub(hub.endpoint), lambda line: None)
    assert not (tmp_path / "net.safetensors").exists()


def test_a_file_the_hub_does_not_have(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(PullError, match=r"acme/net at 012345678901 has no 'other\.safetensors'"):
        pull(manifest("other.safetensors"), tmp_path, Hub(hub.endpoint), lambda line: None)


def test_no_hub_is_one_line(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(PullError, match=r"cannot pull acme/net: .*offline mode"):
        pull(manifest(), tmp_path, Hub(hub.endpoint), lambda line: None)


def test_a_component_that_is_published_nowhere(tmp_path: Path) -> None:
    lonely = ComponentManifest("net", dict, (CheckpointLayout("safetensors", "net.safetensors", SAME_NAMES),))
    with pytest.raises(PullError, match="card 'net': component 'net' is published nowhere"):
        pull(Manifest("net", (lonely,), "Apache-2.0"), tmp_path, Hub(), lambda line: None)
