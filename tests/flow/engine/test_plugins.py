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


# ---- mistakes: seen when it runs -------------------------------------------------------------------------------------


STEP = '        assert view is not None, "the card has a cache"\n'
NEXT = "    def next(self, state: State) -> WorkPlan[Row] | Done:\n"
FINAL = '        assert state.frames_FHWC is not None, "the last step decodes"\n'
BATCH = "        return [self._one(kind, row, view) for row, view in zip(rows, views, strict=True)]\n"

MISTAKES = [
    pytest.param(
        STEP,
        "        if {row} and kind is StepKind.DECODE:\n            return Shown(np.zeros((1, 8, 64, 3), np.uint8))\n",
        "bad_frames",
        "frames have shape (1, 8, 64, 3), the card promises (1, 16, 64, 3)",
        id="another shape",
    ),
    pytest.param(
        STEP,
        "        if {row} and kind is StepKind.DECODE:\n            return Shown(np.zeros((1, 16, 64, 3), 'f4'))\n",
        "bad_frames",
        "frames are float32 (all finite: True), the card promises uint8",
        id="another dtype",
    ),
    pytest.param(
        STEP,
        "        if {row} and kind is StepKind.DECODE:\n            return Shown([1, 2])\n",
        "bad_frames",
        "frames are a list, the card promises an array of uint8",
        id="no array",
    ),
    pytest.param(
        STEP,
        "        if {row} and kind is StepKind.DENOISE:\n            return Moved(row.x_N * np.float32(np.nan))\n",
        "step_failed",
        "NotFinite: denoise of card 'ripple': 16 numbers are not finite",
        id="NaN",
    ),
    pytest.param(
        STEP,
        "        if {row}:\n            raise ZeroDivisionError('as its author wrote')\n",
        "step_failed",
        "ZeroDivisionError: as its author wrote",
        id="exception",
    ),
    pytest.param(
        BATCH,
        "        if any({row} for row in rows):\n            return []\n",
        "step_failed",
        "ShortBatch: denoise of 'ripple': 1 rows, 0 results",
        id="another count",
    ),
    pytest.param(
        NEXT,
        "        if {state}:\n            return None\n",
        "bad_loop",
        "RippleLoop.next returned a NoneType, a WorkPlan or Done is needed",
        id="no plan",
    ),
    pytest.param(
        NEXT,
        "        if {state}:\n            return WorkPlan(StepKind.RECACHE, (N,), Row(state.x_N, 1.0, 0.0))\n",
        "bad_loop",
        "chunk_rollout asks for a 'recache' step, the card names denoise, commit, decode",
        id="a step of another card",
    ),
    pytest.param(
        FINAL,
        "        if {state}:\n            return state.x_N\n",
        "bad_loop",
        "RippleLoop.finalize returned a ndarray, an Outcome is needed",
        id="no outcome",
    ),
    pytest.param(
        FINAL,
        "        if {state}:\n            return Outcome(state.frames_FHWC, Carry(0), 'a digest')\n",
        "bad_loop",
        "an Outcome's latents are a str, Latents.of an array is needed",
        id="no latents",
    ),
]


def mistaken(place: str, mistake: str, always: bool) -> str:
    """The tutorial with a mistake in it: in every chunk, or in those that a key pushes to the right."""
    row, state = ("True", "True") if always else ("row.push > 0.5", "state.push > 0.5")
    written = mistake.format(row=row, state=state)
    code = CODE.replace(place, written + place if place == BATCH else place + written)
    assert code != CODE
    return code


@pytest.mark.parametrize(("place", "mistake", "code", "says"), MISTAKES)
def test_a_mistake_in_every_chunk_is_one_line_before_anybody_comes_in(
    folder: Path, place: str, mistake: str, code: str, says: str
) -> None:
    install(folder, mistaken(place, mistake, always=True))

    async def scene() -> None:
        with pytest.raises(Exception) as problem:
            await started(steady(0.002), (catalog.load("ripple"),))
        said = f"{type(problem.value).__name__}: {problem.value}"
        assert says in said and "\n" not in said

    run(scene())


@pytest.mark.parametrize(("place", "mistake", "code", "says"), MISTAKES)
def test_a_mistake_in_one_chunk_is_a_typed_fault_and_the_session_goes_on(
    folder: Path, place: str, mistake: str, code: str, says: str
) -> None:
    install(folder, mistaken(place, mistake, always=False))

    async def scene() -> None:
        engine, _ = await started(steady(0.002), (catalog.load("ripple"),))
        tried: list[int] = []

        def controls(chunk: int) -> tuple[float, float]:
            tried.append(chunk)
            return 0.0, float(chunk == 5 and tried.count(5) == 1)

        person = Person(engine, "s", "calm", controls=controls)
        assert isinstance(await person.open("ripple"), api.Opened)
        await until(lambda: len(person.done) >= 10)
        (fault,) = person.faults
        assert (fault.code, fault.fatal) == (code, False) and says in fault.detail
        await engine.close()

    run(scene())


def test_steps_that_take_longer_than_their_chunk_are_said_at_load_and_let_nobody_else_in(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(folder)

    async def scene() -> None:
        engine, _ = await started(steady(0.05), (catalog.load("ripple"),))
        (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert line == "card 'ripple' takes 0.200 s for a chunk that lasts 0.083 s: it is late even alone"
        assert isinstance(await Person(engine, "first").open("ripple"), api.Opened)
        refused = await Person(engine, "second").open("ripple")
        assert isinstance(refused, api.Refused) and refused.reason is api.RefusalReason.NO_COMPUTE
        assert refused.figures is not None and refused.figures.needed > refused.figures.limit
        await engine.close()

    run(scene())
