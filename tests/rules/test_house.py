"""The rules of the house that a machine can check: names, sizes, clocks and imports."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from worldroom.tests.paths import ROOT
from worldroom.tests.rules.sources import PACKAGES, SOURCES, parsed, relative


def _isolated(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run code as a console script does: the current folder is not on sys.path."""
    return subprocess.run([sys.executable, "-I", "-c", code], cwd=cwd, capture_output=True, text=True, timeout=120)


def test_no_bare_package_name_is_importable_beside_the_console_script(tmp_path: Path) -> None:
    code = f"import importlib.util as u; print([n for n in {PACKAGES!r} if u.find_spec(n) is not None])"
    done = _isolated(code, ROOT)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_every_package_is_in_the_wheel() -> None:
    """An editable install does not notice one that is not listed."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {path.parent for path in SOURCES if path.name == "__init__.py"}
    assert sorted(listed) == sorted(["worldroom", *(f"worldroom.{relative(f).replace('/', '.')}" for f in folders)])


def test_the_edge_and_the_sessions_never_import_torch(tmp_path: Path) -> None:
    code = (
        "import sys, worldroom.rtc.http.app, worldroom.sessions.rooms.rooms, worldroom.clients.python.measure;"
        "print([m for m in ('torch', 'triton', 'worldroom.models.catalog') if m in sys.modules])"
    )
    done = _isolated(code, tmp_path)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_the_process_that_serves_never_imports_torch(tmp_path: Path) -> None:
    """`worldroom serve` is the edge; the device lives in the worker process it starts."""
    code = (
        "import sys; from worldroom.cli import assemble, serve; from worldroom.models import catalog;"
        "catalog.card('drive'); print([m for m in ('torch', 'triton') if m in sys.modules])"
    )
    done = _isolated(code, tmp_path)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_case_77_a_client_needs_nothing_that_only_a_server_needs(tmp_path: Path) -> None:
    optional = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    server = sorted(re.match(r"[\w-]+", line)[0].lower().replace("-", "_") for line in optional["server"])  # type: ignore[index]
    assert {"torch", "fastapi", "redis"} <= set(server)
    code = (
        f"import sys; hidden = {[*server, 'jwt', 'starlette', 'triton']!r};"
        "none = type('None_', (), {'find_spec': lambda self, name, path=None, target=None:"
        " exec('raise ModuleNotFoundError(name=name)') if name.split('.')[0] in hidden else None})();"
        "sys.meta_path.insert(0, none);"
        "from worldroom.cli.main import app; from worldroom.clients.python.measure import run_join;"
        "from typer.testing import CliRunner; done = CliRunner().invoke(app, ['serve', '--port', '1']);"
        "print(done.exit_code, 'worldroom[server' in done.output)"
    )
    done = _isolated(code, tmp_path)
    assert done.stdout.strip() == "2 True", done.stdout + done.stderr


def test_a_worker_imports_torch_only_for_cards_that_need_it(tmp_path: Path) -> None:
    code = (
        "import sys, worldroom.engine.worker.main; from worldroom.models import catalog;"
        "catalog.prepare(['toy']); catalog.load('toy'); print('torch' in sys.modules);"
        "catalog.prepare(['toy', 'drive']); print('torch' in sys.modules)"
    )
    done = _isolated(code, tmp_path)
    assert done.stdout.split() == ["False", "True"], done.stdout + done.stderr


def test_a_file_is_one_idea() -> None:
    long = {relative(path): n for path in SOURCES if (n := len(path.read_text().splitlines())) > 330}
    assert long == {}


def test_functions_stay_short() -> None:
    long = {
        f"{relative(path)}:{node.name}": length
        for path in SOURCES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > 70
    }
    assert long == {}


def test_every_module_says_what_it_is() -> None:
    silent = [relative(path) for path in SOURCES if path.read_text().strip() and not ast.get_docstring(parsed(path))]
    assert silent == []


def test_names_say_what_a_thing_is() -> None:
    vague = re.compile(r"(Manager|Helper|Utils?|Base|Handler)$")
    found = [
        f"{relative(path)}:{node.name}"
        for path in SOURCES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and vague.search(node.name)
    ]
    assert found == []


def test_only_the_clock_reads_a_clock_in_the_server() -> None:
    reads = re.compile(r"\btime\.(time|monotonic|perf_counter)(_ns)?\(|datetime\.now\(|datetime\.utcnow\(")
    found = [
        f"{relative(path)}:{number}"
        for path in SOURCES
        if path.relative_to(ROOT).parts[0] in ("rtc", "sessions", "engine", "models", "kernels")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if reads.search(line)
    ]
    assert found == []


def test_no_model_calls_triton_directly() -> None:
    found = [
        relative(path)
        for path in SOURCES
        if path.relative_to(ROOT).parts[0] != "kernels"
        and re.search(r"^\s*(import|from) triton", path.read_text(), re.M)
    ]
    assert found == []


@pytest.mark.parametrize("page", ["README.md", "docs/ARCHITECTURE.md", "docs/ADD_A_MODEL.md"])
def test_every_path_that_a_page_names_exists(page: str) -> None:
    """`engine/drive.py` by its path; `drive.py`, named beside its folder, by some file of that name."""
    folders = (*PACKAGES, "docs", "tests")
    names = {path.name for path in SOURCES}
    words = {word for quoted in re.findall(r"`([^`\n]+)`", (ROOT / page).read_text()) for word in quoted.split()}
    missing = [
        word
        for word in sorted(words)
        if re.fullmatch(r"[\w./-]+", word)
        and not (ROOT / word).exists()
        and (word.split("/")[0] in folders if "/" in word else word.endswith(".py") and word not in names)
    ]
    assert missing == []


def test_every_file_that_a_docstring_names_exists() -> None:
    """By its path from anywhere: `door.py`, `api/door.py`, `engine/api/door.py`."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    known = {path[at:] for path in listed for at in (0, *(slash.end() for slash in re.finditer("/", path)))}
    missing = [
        f"{relative(path)}: {name}"
        for path in SOURCES
        for name in re.findall(r"(?:`|-> +)([\w./-]+\.py)\b", path.read_text())
        if name not in known
    ]
    assert missing == []


def test_the_folders_that_the_architecture_lists_are_the_folders_there_are() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^    ( *)([a-z]+)/ ", page.split("## The folders")[1].split("##")[0], re.M)
    listed, outer = set(), ""
    for indent, name in rows:
        outer = outer if indent else name
        listed.add(f"{outer}/{name}" if indent else name)
    packages = {relative(path.parent) for path in SOURCES if path.name == "__init__.py"}
    wanted = {
        p for p in packages if "/" not in p or (p.split("/")[0] in ("rtc", "sessions", "engine") and p.count("/") == 1)
    }
    assert listed == wanted
