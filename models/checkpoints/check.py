"""A checkpoint on disk against a manifest: which layout each component is in, and what is wrong with it.

Reads headers alone and builds networks without memory, so a 14B checkpoint is checked on a laptop in seconds.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..weights import WeightsError, nearest
from .manifest import CheckpointLayout, ComponentManifest, Manifest, Shape
from .stored import StoredTensor, open_stored, without

INDEXES = ("modular_model_index.json", "model_index.json")


@dataclass(frozen=True, slots=True)
class Found:
    """One component where it was found. `table`: our keys -> stored entries, complete and of the right shapes."""

    component: str
    layout: CheckpointLayout
    path: Path
    table: Mapping[str, StoredTensor]

    @property
    def parameters(self) -> int:
        return sum(_count(entry.shape) for entry in self.table.values())

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(sorted({entry.dtype for entry in self.table.values()}))


@dataclass(frozen=True, slots=True)
class Finding:
    """What the check says of one component: `found`, or the one-line `problem`."""

    component: str
    found: Found | None
    problem: str


def check(manifest: Manifest, root: Path) -> tuple[Finding, ...]:
    """One finding per component. `root` is a folder, or one file (then only the component it fits is checked)."""
    if root.is_file():
        return (_check_file(manifest, root),)
    findings = []
    for component in manifest.components:
        try:
            findings.append(Finding(component.name, find(component, root), ""))
        except WeightsError as error:
            findings.append(Finding(component.name, None, str(error)))
    return tuple(findings)


def find(component: ComponentManifest, root: Path) -> Found:
    """The component under a checkpoint's root, checked against what it must hold; raises `WeightsError`."""
    layout, path = locate(component, root)
    table = without(open_stored(path, layout.unwrap), layout.ignore)
    return Found(component.name, layout, path, compare(component, layout, path, table))


def locate(component: ComponentManifest, root: Path) -> tuple[CheckpointLayout, Path]:
    """The first layout whose file is there; a pipeline's index may name another folder for the component."""
    if root.is_file():
        return best_layout(component, root), root
    for layout in component.layouts:
        if (root / layout.file).exists():
            return layout, root / layout.file
    if (named := _indexed(root, component.name)) is not None:
        return best_layout(component, named), named
    if any((root / name).is_file() for name in ("config.json", "diffusion_pytorch_model.safetensors")):
        return best_layout(component, root), root
    tried = ", ".join(layout.file for layout in component.layouts)
    raise WeightsError(root, f"component '{component.name}' is missing: looked for {tried}")


def best_layout(component: ComponentManifest, path: Path) -> CheckpointLayout:
    """The layout under whose names most of the expected keys are in the file."""
    return max(component.layouts, key=lambda layout: _hits(component, layout, path))


def compare(
    component: ComponentManifest, layout: CheckpointLayout, path: Path, table: Mapping[str, StoredTensor]
) -> dict[str, StoredTensor]:
    """The table under our names; raises `WeightsError` for a missing, extra or misshapen key or a wrong dtype."""
    expected = component.expects()
    public = {layout.keys.to_public(key): key for key in expected}
    missing, extra = sorted(set(public) - set(table)), sorted(set(table) - set(public))
    if missing:
        near = nearest(missing[0], extra)
        raise WeightsError(path, f"key '{missing[0]}' is missing ({len(missing)} in all){near}")
    if extra:
        near = nearest(extra[0], sorted(public))
        file = table[extra[0]].file
        raise WeightsError(file, f"key '{extra[0]}' is not expected ({len(extra)} in all){near}")
    mapped = {}
    for name, key in public.items():
        _check_entry(name, table[name], tuple(expected[key]), component.dtypes)
        mapped[key] = table[name]
    return mapped


def _check_entry(name: str, entry: StoredTensor, shape: Shape, dtypes: tuple[str, ...]) -> None:
    if entry.shape != shape:
        raise WeightsError(entry.file, f"key '{name}' has shape {entry.shape}, expected {shape}")
    if entry.dtype not in dtypes:
        raise WeightsError(entry.file, f"key '{name}' has dtype {entry.dtype}, expected {', '.join(dtypes)}")


def _check_file(manifest: Manifest, file: Path) -> Finding:
    """A lone file belongs to the component whose keys it holds most of."""

    component = max(manifest.components, key=lambda part: max(_hits(part, layout, file) for layout in part.layouts))
    try:
        return Finding(component.name, find(component, file), "")
    except WeightsError as error:
        return Finding(component.name, None, str(error))


def _hits(component: ComponentManifest, layout: CheckpointLayout, path: Path) -> int:
    """How many of the expected keys the file has under the layout's names; -1 = it cannot be read as that layout."""
    try:
        table = open_stored(path, layout.unwrap)
    except WeightsError:
        return -1
    return sum(layout.keys.to_public(key) in table for key in component.expects())


def _indexed(root: Path, component: str) -> Path | None:
    """The folder a pipeline's index gives the component: `[library, class]` or, modular, with `{"subfolder": ...}`."""
    for name in INDEXES:
        file = root / name
        if not file.is_file():
            continue
        try:
            index = json.loads(file.read_text())
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise WeightsError(file, f"is not JSON ({error})") from error
        entry = index.get(component) if isinstance(index, dict) else None
        if not isinstance(entry, list) or not entry:
            known = [key for key, value in index.items() if isinstance(value, list)] if isinstance(index, dict) else []
            raise WeightsError(file, f"component '{component}' is missing{nearest(component, known)}")
        where = entry[2] if len(entry) > 2 and isinstance(entry[2], dict) else {}
        subfolder = where.get("subfolder") or component
        elsewhere = where.get("pretrained_model_name_or_path") or where.get("repo")
        folder = root / str(subfolder)
        if not folder.exists() and isinstance(elsewhere, str) and Path(elsewhere).is_dir():
            folder = Path(elsewhere) / str(subfolder)
        if not folder.exists():
            source = f" (it lives in '{elsewhere}')" if elsewhere else ""
            raise WeightsError(file, f"component '{component}' is in '{subfolder}', which is not here{source}")
        return folder
    return None


def _count(shape: Shape) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
