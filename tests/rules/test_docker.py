"""What can be known of the containers without an engine: pinned, closed, complete, and no query without its metric."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command
from worldroom.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "docker" / "worldroom.Dockerfile").read_text()


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_is_pinned_without_root_and_without_a_disk_to_write_to(name: str) -> None:
    service = SERVICES[name]
    assert re.search(r":v?\d+\.\d+\.\d+", service["image"]), service["image"]
    assert service["user"] not in ("0", "root", "")
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert "healthcheck" in service or ("build" in service and "HEALTHCHECK" in DOCKERFILE)


def test_what_is_asked_for_by_name_exists() -> None:
    for service in SERVICES.values():
        assert set(service.get("depends_on", {})) <= set(SERVICES)
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], volume
    assert {profile for service in SERVICES.values() for profile in service.get("profiles", ())} == {
        "gpu",
        "turn",
        "livekit",
        "metrics",
    }


def test_every_flag_and_variable_of_the_server_is_one_of_its_own() -> None:
    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    flags = {option for param in serve.params for option in param.opts}
    own = {str(param.envvar) for param in serve.params if param.envvar}
    own |= {f"WORLDROOM_SERVE_{param.name}".upper() for param in serve.params}
    for name in ("worldroom", "worldroom-gpu"):
        used = {word.split("=")[0] for word in SERVICES[name]["command"] if word.startswith("--")}
        assert used <= flags
        assert set(SERVICES[name]["environment"]) <= own


def test_the_image_is_not_built_as_it_runs_and_its_steps_are_a_script() -> None:
    assert len(re.findall(r"^FROM \S+:\d+\.\d+\.\d+\S*", DOCKERFILE, re.M)) == 2
    assert re.findall(r"^USER (\d+)$", DOCKERFILE, re.M) == ["10001"]
    assert "docker/install.sh" in DOCKERFILE
    done = subprocess.run(["sh", "-n", ROOT / "docker" / "install.sh"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def queries() -> list[str]:
    board = json.loads((ROOT / "docker" / "grafana" / "dashboards" / "worldroom.json").read_text())
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def test_the_dashboard_is_one_that_grafana_provisions() -> None:
    provider = yaml.safe_load((ROOT / "docker/grafana/provisioning/dashboards/worldroom.yml").read_text())
    source = yaml.safe_load((ROOT / "docker/grafana/provisioning/datasources/prometheus.yml").read_text())
    mounted = next(volume for volume in SERVICES["grafana"]["volumes"] if "dashboards:" in volume)
    assert provider["providers"][0]["options"]["path"] == mounted.split(":")[1]
    board = json.loads((ROOT / "docker/grafana/dashboards/worldroom.json").read_text())
    assert {panel["datasource"]["uid"] for panel in board["panels"]} == {source["datasources"][0]["uid"]}
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) == 12
