"""Names: a class has one of its own, and tests read only names that are public."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from worldroom.tests.rules.sources import SOURCES, TESTS, of_family, parsed, relative

OF_LIBRARIES = {
    ("tests/flow/rtc/test_rtc_loss.py", "_connection"): "aiortc's transport, to lose packets",
    ("tests/flow/rtc/test_rtc_peers.py", "_ssrc"): "aiortc's sender",
    ("tests/livekit_server.py", "_ssrc"): "aiortc's sender",
    (
        "tests/livekit_server.py",
        "_RTCPeerConnection__createDtlsTransport",
    ): "aiortc's connection, to keep it on loopback",
    ("tests/flow/rtc/test_rtc_peers.py", "_handle_rtcp_packet"): "aiortc's sender, to give it a packet",
}
"""Private names that a library has too."""


def defined_classes(trees: Iterable[tuple[str, ast.Module]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path)
    return found


def private_names(trees: Iterable[ast.Module]) -> set[str]:
    """What classes and modules call `_so`: fields, methods, functions, classes."""
    found: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case _:
                pass
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def private_reads(tree: ast.Module, private: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) if name in private:
                yield name
            case ast.ImportFrom(names=names):
                yield from (alias.name for alias in names if alias.name in private)
            case _:
                pass


def test_a_class_name_is_given_once_outside_families() -> None:
    classes = defined_classes((relative(path), parsed(path)) for path in SOURCES if not of_family(path))
    assert {name: paths for name, paths in classes.items() if len(paths) > 1} == {}


def test_a_name_given_twice_is_found() -> None:
    trees = [("a.py", ast.parse("class Room: ...")), ("b.py", ast.parse("def f():\n class Room: ..."))]
    assert defined_classes(trees) == {"Room": ["a.py", "b.py"]}


def test_tests_read_no_private_names_of_the_product() -> None:
    private = private_names(map(parsed, SOURCES))
    reads = {
        relative(path): names
        for path in TESTS
        if (names := [n for n in private_reads(parsed(path), private) if (relative(path), n) not in OF_LIBRARIES])
    }
    assert reads == {}


def test_a_private_read_is_found_however_it_is_written() -> None:
    product = ast.parse("class Session:\n def __init__(self): self._due = 1\n def _begin(self): ...\n_LIMIT = 3")
    private = private_names([product])
    assert private == {"_due", "_begin", "_LIMIT"}
    test = ast.parse(
        "session._due\nserver.session._begin()\nfrom x import _LIMIT\nself._due\nother._unknown\nx.__dict__"
    )
    assert sorted(private_reads(test, private)) == ["_LIMIT", "_begin", "_due"]
