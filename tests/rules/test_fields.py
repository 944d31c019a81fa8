"""A field of a struct is written somewhere by more than its default, and read somewhere. Both are looked up by name."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from worldroom.tests.paths import ROOT
from worldroom.tests.rules.sources import SOURCES, TESTS, parsed, relative

WEB = ROOT / "clients" / "web"
PAGE = "\n".join(path.read_text() for folder in ("sdk", "src") for path in sorted((WEB / folder).rglob("*.js")))

SERVER = tuple(path for path in SOURCES if path.relative_to(ROOT).parts[0] in ("rtc", "sessions", "engine", "models"))

READ_WHOLE = {
    "RoomsCounters": "/metrics",
    "Meta": "Perfetto",
    "Slice": "Perfetto",
    "ChromeTrace": "Perfetto",
    "VideoGrant": "token of LiveKit's kind",
    "Claims": "token of LiveKit's kind",
    "GoldenChunk": "parity tests",
    "FrameNote": "whoever reads the notes of a film",
    "RecordingInfo": "the library",
    "ChapterInfo": "the library",
    "LibrarySession": "the library",
    "LibraryPage": "the library",
    "SessionDetail": "the library",
    "TimelineMark": "the library",
    "Removed": "whoever deleted a session",
    "RecordingView": "whoever asked for a film",
    "ExportReport": "printed whole",
    "ExportedSession": "manifest.json",
    "Vector": "docs/game_client_vectors.json",
}
"""Structs that somebody reads as a whole, field by field without naming them: who."""

READ_ELSEWHERE = {
    "Entry.version": "whoever reads a journal",
    "Entry.branch": "whoever reads a journal",
    "FramesShown.first": "whoever reads a journal",
    "FramesShown.last": "whoever reads a journal",
    "StateMoved.cause": "whoever reads a journal",
    "RoomPass.expires": "whoever asked for a pass",
    "Capabilities.previews": "whoever lists cards",
    "LoadedCard.prompt_carry": "the engine, once its scheduler runs two loops of a card",
}
"""Class.field: who reads it, where that is not the product's code."""

CONSTANT = {
    "EngineSpec": "what an engine was tuned with, in one place",
    "ArchiveSpec": "what an archive was tuned with, in one place",
    "AnyFlowSpec.full_limit": "published with the weights",
    "VaeSizes.temporal_down": "published with the weights",
    "Clip.guidance": "published with the weights",
    "WaypointSpec.fuse_every": "published with the weights",
    "ComponentManifest.dtypes": "files of narrower numbers are read by a manifest of their own",
    "VideoGrant": "decoded from a token",
    "RoomAsk": "decoded from a body",
    "ChromeTrace.displayTimeUnit": "part of the format",
}
"""Class.field, or class: why nobody sets it to anything but its default."""


@dataclass(frozen=True)
class Field:
    path: str
    struct: str
    name: str
    place: int
    defaulted: bool

    @property
    def called(self) -> str:
        return f"{self.struct}.{self.name}"


def _is_struct(node: ast.ClassDef, structs: set[str]) -> bool:
    marks = {ast.unparse(d.func if isinstance(d, ast.Call) else d).split(".")[-1] for d in node.decorator_list}
    bases = {ast.unparse(base).split(".")[-1] for base in node.bases}
    return "dataclass" in marks or bool(bases & (structs | {"Struct"}))


def fields(trees: Iterable[tuple[str, ast.Module]]) -> list[Field]:
    """Public fields of dataclasses and msgspec structs."""
    found: list[Field] = []
    structs: set[str] = set()
    classes = [(path, node) for path, tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for _ in range(3):  # structs of structs
        structs |= {node.name for _, node in classes if _is_struct(node, structs)}
    for path, node in classes:
        if node.name in structs:
            rows = [row for row in node.body if isinstance(row, ast.AnnAssign) and isinstance(row.target, ast.Name)]
            for place, row in enumerate(rows):
                assert isinstance(row.target, ast.Name)
                if not row.target.id.startswith("_") and "ClassVar" not in ast.unparse(row.annotation):
                    grows = "default_factory" in ast.unparse(row)  # written by what is put into it
                    found.append(Field(path, node.name, row.target.id, place, row.value is not None and not grows))
    return found


def reads(trees: Iterable[ast.Module], declared: list[Field]) -> set[str]:
    """Names that are read as attributes or matched by a pattern, by name or by place."""
    found: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()):
                found.add(name)
            case ast.MatchClass(cls=matched, patterns=places, kwd_attrs=names):
                struct = ast.unparse(matched).split(".")[-1]
                found.update(names)
                found.update(f.name for f in declared if f.struct == struct and f.place < len(places))
            case _:
                pass
    return found


def writes(trees: Iterable[ast.Module]) -> Iterator[tuple[str, str | int]]:
    """(who is called, number of positional arguments), ("", keyword of a call) and ("", attribute that is assigned)."""
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Call(func=func, args=args, keywords=keywords):
                unpacked = any(isinstance(argument, ast.Starred) for argument in args)
                yield ast.unparse(func).split(".")[-1], 99 if unpacked else len(args)
                for keyword in keywords:
                    yield "", keyword.arg or ""
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield "", name
            case _:
                pass


def unread(declared: list[Field], trees: list[ast.Module], page: str = "") -> list[str]:
    read = reads(trees, declared) | set(re.findall(r"\b[a-z_]+\b", page))
    return [field.called for field in declared if field.name not in read]


def unwritten(declared: list[Field], trees: list[ast.Module], page: str = "") -> list[str]:
    named: set[str] = set(re.findall(r"\b[a-z_]+\b", page))
    places: dict[str, int] = {}
    for who, what in writes(trees):
        if isinstance(what, int):
            places[who] = max(places.get(who, 0), what)
        else:
            named.add(what)
    return [
        field.called
        for field in declared
        if field.defaulted and field.name not in named and places.get(field.struct, 0) <= field.place
    ]


def declared_fields() -> list[Field]:
    return fields([(relative(path), parsed(path)) for path in SERVER])


def test_every_field_is_read() -> None:
    found = unread(declared_fields(), [parsed(path) for path in SOURCES], PAGE)
    assert [name for name in found if name not in READ_ELSEWHERE and name.split(".")[0] not in READ_WHOLE] == []


def test_every_field_is_written_by_more_than_its_default() -> None:
    """By the product, or by a test that needs another value."""
    found = unwritten(declared_fields(), [parsed(path) for path in [*SOURCES, *TESTS]], PAGE)
    assert [name for name in found if name not in CONSTANT and name.split(".")[0] not in CONSTANT] == []


def test_no_exception_has_outlived_its_reason() -> None:
    declared = {field.called for field in declared_fields()}
    declared |= {name.split(".")[0] for name in declared}
    assert {name for name in [*READ_WHOLE, *READ_ELSEWHERE, *CONSTANT] if name not in declared} == set()


def test_fields_nobody_reads_or_writes_are_found() -> None:
    product = ast.parse(
        "@dataclass\nclass Seat:\n token: str\n name: str = ''\n lease: float = 0.0\n"
        "seat = Seat('t', 'n')\nprint(seat.token)\nmatch seat:\n case Seat(token, name): ..."
    )
    declared = fields([("a.py", product)])
    assert [(field.called, field.defaulted) for field in declared] == [
        ("Seat.token", False),
        ("Seat.name", True),
        ("Seat.lease", True),
    ]
    assert unread(declared, [product]) == ["Seat.lease"]
    assert unwritten(declared, [product]) == ["Seat.lease"]
