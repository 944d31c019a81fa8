"""Each wall of pyproject's import contracts falls when one import is added that it forbids."""

from collections.abc import Iterator
from copy import deepcopy
from functools import cache

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.application import use_cases
from importlinter.domain.contract import Contract, registry
from worldroom.tests.paths import ROOT

NO_CLIMBING = "nobody below the command line imports training, clients, the simulation or the command line"


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("worldroom", include_external_packages=True, cache_dir=None)


@cache
def contracts() -> dict[str, Contract]:
    use_cases._register_built_in_contract_types()
    read = read_configuration(str(ROOT / "pyproject.toml"))
    return {
        options["name"]: registry.get_contract_class(options["type"])(
            options["name"],
            read["session_options"],
            {key: value for key, value in options.items() if key not in ("name", "type")},
        )
        for options in read["contracts_options"]
    }


def broken_by(importer: str, imported: str) -> Iterator[str]:
    """Names of the contracts that do not hold with one import more."""
    changed = deepcopy(graph())
    changed.add_module(f"worldroom.{importer}")
    changed.add_import(
        importer=f"worldroom.{importer}", imported=f"worldroom.{imported}", line_number=1, line_contents="import"
    )
    for name, contract in contracts().items():
        if not contract.check(deepcopy(changed), verbose=False).kept:
            yield name


@pytest.mark.parametrize(
    ("wall", "importer", "imported"),
    [
        ("rtc > sessions > engine > models > kernels", "engine.engine", "sessions.messages"),
        (NO_CLIMBING, "models.drive", "training"),
        (NO_CLIMBING, "engine.engine", "simulation.device"),
        ("the simulation sees engine and models alone", "simulation.person", "sessions.messages"),
        ("rtc and sessions see engine.api alone", "sessions.rooms.room", "engine.session.session"),
        ("rtc and sessions see engine.api alone", "rtc.viewer", "models.contract.card"),
        ("clients see rtc.wire alone", "clients.python.room", "rtc.edge"),
        ("clients see rtc.wire alone", "clients.python.room", "sessions.messages"),
        ("inside rtc", "rtc.media.sender", "rtc.viewer"),
        ("inside rtc", "rtc.wire", "rtc.media.packets"),
        ("inside rtc", "rtc.a_new_module", "rtc.wire"),
        ("inside sessions", "sessions.session.session", "sessions.rooms.room"),
        ("inside sessions", "sessions.journal.events", "sessions.session.inbox"),
        ("inside engine", "engine.scheduling.scheduler", "engine.device.dispatch"),
        ("inside engine", "engine.api.door", "engine.caches.slab_pool"),
        ("inside engine", "engine.a_new_module", "engine.api"),
        ("inside models: families know nothing of each other", "models.wan.card", "models.drive.card"),
        ("inside models: families know nothing of each other", "models.contract.card", "models.shared"),
        ("no circles, also inside folders", "sessions.rooms.seats", "sessions.rooms.room"),
        ("no circles, also inside folders", "kernels.checks", "kernels.noise"),
    ],
)
def test_one_import_more_and_the_wall_falls(wall: str, importer: str, imported: str) -> None:
    assert wall in set(broken_by(importer, imported))


def test_every_wall_stands_and_is_tried_above() -> None:
    tried = {arguments[0] for arguments in test_one_import_more_and_the_wall_falls.pytestmark[0].args[1]}
    assert tried == set(contracts())
    assert [name for name, contract in contracts().items() if not contract.check(deepcopy(graph()), False).kept] == []
