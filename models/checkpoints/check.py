"""A checkpoint on disk against a manifest: which layout each component is in, and what is wrong with it.

Reads headers alone and builds networks without memory, so a 14B checkpoint is checked on a laptop in seconds.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..weights import WeightsError, nearest
from .manifest import CheckpointLayout, ComponentManifest, FolderManifest, Manifest, Shape, StandIn
from .names import SAME_NAMES
from .scaled import unscaled
from .stored import STEMS, StoredTensor, open_stored, without
from .wrapping import Unwrapped, unwrapped

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
    """What the check says of one component: `found`, or the one-line `problem`. `error`: of one that stands in for
    another, where both are here.
    """

    component: str
    found: Found | None
    problem: str
    error: float | None = None


def check(manifest: Manifest, root: Path) -> tuple[Finding, ...]:
    """One finding per component. `root` is a folder, or one file (then only the component it fits is checked).

    Weights are read only of a component that stands in for another, and of that one.
    """
    if root.is_file():
        return (_check_file(manifest, root),)
    findings = []
    for component in manifest.components:
        try:
            findings.append(Finding(component.name, find(component, root), ""))
        except WeightsError as error:
            findings.append(Finding(component.name, None, str(error)))
    for folder in manifest.folders:
        try:
            findings.append(Finding(folder.name, find_folder(folder, root), ""))
        except WeightsError as error:
            findings.append(Finding(folder.name, None, str(error)))
    here = {finding.component for finding in findings if finding.found is not None}
    stand_ins = {part.name: part.stands_in for part in manifest.components if part.stands_in is not None}
    return tuple(_measured(finding, stand_ins.get(finding.component), here, root) for finding in findings)


def _measured(finding: Finding, stand_in: StandIn | None, here: Collection[str], root: Path) -> Finding:
    if stand_in is None or not {finding.component, stand_in.component} <= set(here):
        return finding
    try:
        error = stand_in.error(root)
    except WeightsError as problem:
        return replace(finding, found=None, problem=str(problem))
    if error <= stand_in.tolerance:
        return replace(finding, error=error)
    said = f"is {error:.3g} away from '{stand_in.component}' ({stand_in.measure}); {stand_in.tolerance} is declared"
    return replace(finding, found=None, problem=f"{root}: '{finding.component}' {said}", error=error)


def find_folder(folder: FolderManifest, root: Path) -> Found:
    """A folder another library loads: its files, its configuration and its headers; raises `WeightsError`."""
    path = root / folder.name
    if not path.is_dir():
        raise WeightsError(path, f"the folder '{folder.name}' is missing: `worldroom cards pull` fetches it")
    for group in folder.needs:
        if not any((path / name).is_file() for name in group):
            raise WeightsError(path, f"holds none of {', '.join(group)}")
    if folder.config:
        config = json_of(path / "config.json")
        for key, value in folder.config.items():
            if config.get(key) != value:
                raise WeightsError(path / "config.json", f"says {key} = {config.get(key)}, expected {value}")
    weights = any(name.startswith(STEMS) for group in folder.needs for name in group)
    table = open_stored(path) if weights else {}
    return Found(folder.name, CheckpointLayout("transformers", folder.name, SAME_NAMES, folder.repo), path, table)


def json_of(file: Path) -> Mapping[str, object]:
    """The object in a JSON file; raises `WeightsError`."""
    try:
        made = json.loads(file.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise WeightsError(file, f"is not JSON ({error})") from error
    if not isinstance(made, dict):
        raise WeightsError(file, f"holds a {type(made).__name__}, not an object")
    return made


def find(component: ComponentManifest, root: Path) -> Found:
    """The component under a checkpoint's root, checked against what it must hold; raises `WeightsError`."""
    layout, path = locate(component, root)
    return Found(component.name, layout, path, compare(component, layout, path, open_stored(path, layout.unwrap)))


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
    """The table under our names; raises `WeightsError` for a missing, extra or misshapen key or a wrong dtype.

    Complaints name keys as the file has them.
    """
    expected = component.expects()
    public = {layout.keys.to_public(key): key for key in expected}
    plain = _plain(component, layout, path, table)
    found, named = plain.table, plain.named
    missing, extra = sorted(set(public) - set(found)), sorted(set(found) - set(public))
    if missing:
        near = nearest(named(missing[0]), [named(key) for key in extra])
        raise WeightsError(path, f"key '{named(missing[0])}' is missing ({len(missing)} in all){near}")
    if extra:
        near = nearest(named(extra[0]), [named(key) for key in sorted(public)])
        file = found[extra[0]].file
        raise WeightsError(file, f"key '{named(extra[0])}' is not expected ({len(extra)} in all){near}")
    mapped = {}
    for name, key in public.items():
        _check_entry(named(name), found[name], tuple(expected[key]), component.dtypes)
        mapped[key] = found[name]
    return mapped


def _plain(
    component: ComponentManifest, layout: CheckpointLayout, path: Path, table: Mapping[str, StoredTensor]
) -> Unwrapped:
    """The table without what other programs put before its keys, without scales, without what is no weight of ours."""
    wanted = {layout.keys.to_public(key) for key in component.expects()}
    plain = unwrapped(without(table, layout.ignore), wanted, layout.prefixes)
    return Unwrapped(without(unscaled(path, plain.table), layout.ignore), plain.stored, plain.lead)


def _check_entry(name: str, entry: StoredTensor, shape: Shape, dtypes: tuple[str, ...]) -> None:
    if entry.shape != shape:
        raise WeightsError(entry.file, f"key '{name}' has shape {entry.shape}, expected {shape}")
    if entry.dtype not in dtypes:
        bare = " (fp8 without scales)" if entry.dtype.startswith("float8") else ""
        raise WeightsError(entry.file, f"key '{name}' has dtype {entry.dtype}{bare}, expected {', '.join(dtypes)}")


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
    wanted = {layout.keys.to_public(key) for key in component.expects()}
    return len(wanted & unwrapped(table, wanted, layout.prefixes).table.keys())


def _indexed(root: Path, component: str) -> Path | None:
    """The folder a pipeline's index gives the component: `[library, class]` or, modular, with `{"subfolder": ...}`."""
    for name in INDEXES:
        file = root / name
        if not file.is_file():
            continue
        index = json_of(file)
        entry = index.get(component)
        if not isinstance(entry, list) or not entry:
            known = [key for key, value in index.items() if isinstance(value, list)]
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
