"""The product's source files, for rules that read them."""

import ast
from functools import cache
from pathlib import Path

from worldroom.tests.paths import ROOT

PACKAGES = ("cli", "clients", "engine", "kernels", "models", "rtc", "sessions", "simulation", "training")
SOURCES = [
    path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")) if "node_modules" not in path.parts
] + [ROOT / "clock.py", ROOT / "film.py"]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
FAMILIES = tuple(path.parent for path in SOURCES if path.name == "family.py" and path.parent != ROOT / "models")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def of_family(path: Path) -> bool:
    """Code of one family: its folder and its training."""
    return any(family in path.parents for family in FAMILIES) or ROOT / "training" in path.parents
