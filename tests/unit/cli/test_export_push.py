"""`worldroom export --push`: with a token the folder goes to the hub, without one a line says what is missing."""

from pathlib import Path

import huggingface_hub
import pytest
import typer
from worldroom.cli.export import push_to_hub


class Hub:
    """In place of the hub: what it was asked for."""

    asked: tuple[tuple[str, object], ...] = ()
    away = False

    def create_repo(self, repository: str, repo_type: str, exist_ok: bool, private: bool) -> None:
        if self.away:
            raise OSError("no route to host with token hf_secret")
        Hub.asked += (("create", (repository, repo_type, exist_ok, private)),)

    def upload_folder(self, repo_id: str, folder_path: str, repo_type: str) -> None:
        Hub.asked += (("upload", (repo_id, folder_path, repo_type)),)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> type[Hub]:
    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    monkeypatch.setattr(Hub, "asked", ())
    return Hub


def test_with_a_token_the_folder_is_uploaded_to_a_private_data_set(
    hub: type[Hub], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_secret")
    push_to_hub(tmp_path, "me/worlds")
    assert hub.asked == (
        ("create", ("me/worlds", "dataset", True, True)),
        ("upload", ("me/worlds", str(tmp_path), "dataset")),
    )


def test_without_a_token_or_a_hub_it_is_one_line_without_secrets(
    hub: type[Hub], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with pytest.raises(typer.Exit):
        push_to_hub(tmp_path, "me/worlds")
    assert "set HF_TOKEN" in capsys.readouterr().err and hub.asked == ()
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_secret")
    monkeypatch.setattr(hub, "away", True)
    with pytest.raises(typer.Exit):
        push_to_hub(tmp_path, "me/worlds")
    said = capsys.readouterr().err
    assert "the hub did not take it" in said and "hf_secret" not in said
