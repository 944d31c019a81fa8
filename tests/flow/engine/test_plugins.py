"""Somebody else's family: the tutorial's text, installed outside the repository, plays as our own do; and what is said
about each mistake it could hold.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from worldroom.engine import api
from worldroom.models import catalog, plugins
from worldroom.models.contract.faults import CardFault, FamilyFault
from worldroom.models.parity.ladder import judge
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, started, steady, until
from worldroom.tests.paths import ROOT

PAGE = (ROOT / "docs" / "ADD_A_MODEL.md").read_text()
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
PROJECT = tomllib.loads(re.findall(r"```toml\n(.*?)```", PAGE, re.S)[0])["project"]


def install(folder: Path, code: str = CODE) -> None:
    """What pip leaves in site-packages: the module, and a .dist-info that names its entry points."""
    name, version = PROJECT["name"].replace("-", "_"), PROJECT["version"]
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    points = "".join(
        f"[{group}]\n" + "".join(f"{point} = {value}\n" for point, value in entries.items())
        for group, entries in PROJECT["entry-points"].items()
    )
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PROJECT['name']}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(points)
    (folder / "ripple_world.py").write_text(code)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose packages are found, as if it were site-packages."""
    monkeypatch.syspath_prepend(tmp_path)
    plugins.find.cache_clear()
    yield tmp_path
    sys.modules.pop("ripple_world", None)
    plugins.find.cache_clear()


def module() -> ModuleType:
    return sys.modules["ripple_world"]


def test_a_family_of_another_package_is_in_the_catalog_and_climbs_its_ladder(folder: Path) -> None:
    install(folder)
    assert "ripple" in catalog.names() and catalog.card("ripple").family == "ripple"
    verdicts = [judge("ripple", check) for check in catalog.checks("ripple")]
    assert [(verdict.level, verdict.ok) for verdict in verdicts] == [("C1", True), ("interleave", True)], verdicts


def test_a_strict_type_checker_has_nothing_to_say_about_it(folder: Path) -> None:
    install(folder)
    command = [sys.executable, "-m", "mypy", "--strict", str(folder / "ripple_world.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_loop_is_driven_by_the_engine_and_its_worlds_are_portable(folder: Path) -> None:
    install(folder)

    async def scene() -> list[str]:
        engine, _ = await started(steady(0.002), (catalog.load("ripple"),))
        person = Person(engine, "s", controls=lambda chunk: (float(chunk % 2), 0.0))
        answer = await person.open("ripple")
        assert isinstance(answer, api.Opened) and answer.card.controls[0].name == "left"
        await until(lambda: len(person.done) >= 20)
        await engine.close()
        return person.digests()[:20]

    assert run(scene()) == run(scene())


# ---- mistakes: in the package ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda code: "import nowhere_at_all\n" + code, "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        (lambda code: code + "\nFAMILY = 7\n", "'ripple_world:FAMILY' is a int, a Family is needed"),
        (lambda code: code.replace('"ripple", (CARD,)', '"ripple", ()'), "family 'ripple' has no cards"),
        (lambda code: code.replace('name="ripple"', 'name="toy"'), "there is a card 'toy' already"),
        (lambda code: code.replace('family="ripple"', 'family="pond"'), "card 'ripple' says family 'pond'"),
        (
            lambda code: code.replace('suggestions=("calm", "storm")', "suggestions=()"),
            "CardFault: card 'ripple', field suggestions: a world starts with the first one, there is none",
        ),
        (
            lambda code: code.replace("per_chunk=1)", "per_chunk=0)"),
            "CardFault: card 'ripple', field frame: sizes, rate and counts are 1 or more",
        ),
        (lambda code: code.replace('RuntimeChoice("pull", 2', 'RuntimeChoice("pull", 3'), "does not allow steps '3'"),
    ],
)
def test_a_package_that_cannot_be_used_is_one_line_and_stops_nobody_else(
    folder: Path, change: object, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    install(folder, change(CODE))  # type: ignore[operator]
    with pytest.raises(FamilyFault) as fault:
        catalog.load("ripple")
    (line,) = [record.getMessage() for record in caplog.records if record.name.endswith("plugins")]
    assert line == str(fault.value) and says in line and "\n" not in line
    assert line.startswith("family ripple, from package ripple-world cannot be used: ")
    assert "toy" in catalog.names() and "ripple" not in catalog.names()


# ---- mistakes: seen when the card is loaded --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda code: code.replace("def rebase(", "def rebased("),
            "card 'ripple', field loops.chunk_rollout: RippleLoop has no method rebase",
        ),
        (
            lambda code: code.replace("def warm_up_rows(", "def rows("),
            "card 'ripple', field runtime: RippleRuntime has no method warm_up_rows",
        ),
        (
            lambda code: code.replace("def write_entry(", "def write("),
            "card 'ripple', field slab: RippleRuntime has no method write_entry",
        ),
        (
            lambda code: code.replace("{card.main_loop: RippleLoop()}", '{"other": RippleLoop()}'),
            "card 'ripple', field loops: ['other'] were loaded, the card names ['chunk_rollout']",
        ),
    ],
)
def test_what_a_loaded_card_lacks_is_said_at_load(folder: Path, change: object, says: str) -> None:
    install(folder, change(CODE))  # type: ignore[operator]
    with pytest.raises(CardFault) as fault:
        catalog.load("ripple")
    assert str(fault.value) == says


def test_a_load_that_returns_something_else_is_said_at_load(folder: Path) -> None:
    install(folder, CODE.replace("    runtime = RippleRuntime()\n", "    return None\n    runtime = RippleRuntime()\n"))
    with pytest.raises(FamilyFault, match="its load returned a NoneType, a LoadedCard is needed"):
        catalog.load("ripple")
