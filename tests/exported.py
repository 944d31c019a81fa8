"""Checkpoints for tests, written the way others publish them: one file, torch's `.pt`, shards, or a diffusers folder.

The inverse of `check` and `load`: what is exported in a layout is found and checked in that layout.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from worldroom.models.checkpoints.check import compare
from worldroom.models.checkpoints.manifest import CheckpointLayout, ComponentManifest, Manifest
from worldroom.models.checkpoints.stored import open_stored

SHARD_BYTES = 5 * 10**9


def export_component(
    component: ComponentManifest,
    layout: CheckpointLayout,
    tensors: Mapping[str, Tensor],
    root: Path,
    shard: int = SHARD_BYTES,
) -> Path:
    """Write our tensors under the layout's public names below `root`, and check what was written. Returns its path."""
    lead = layout.prefixes[0] if layout.prefixes else ""
    public = {lead + layout.keys.to_public(key): tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
    path = root / layout.file
    match path.suffix:
        case ".safetensors":
            path.parent.mkdir(parents=True, exist_ok=True)
            save_file(public, path)
        case ".pt" | ".pth" | ".bin":
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save({layout.unwrap[0]: public} if layout.unwrap else public, path)
        case _:
            _folder(component, public, path, shard)
    compare(component, layout, path, open_stored(path, layout.unwrap))
    return path


def write_indexes(manifest: Manifest, folders: Mapping[str, str], root: Path, repo: str = "") -> None:
    """`model_index.json` and `modular_model_index.json` for components exported as folders (name -> folder)."""
    plain: dict[str, object] = {"_class_name": "DiffusionPipeline", "_name_or_path": repo or manifest.card}
    modular: dict[str, object] = {"_class_name": "ModularPipeline", "_blocks_class_name": "SequentialPipelineBlocks"}
    for name, folder in folders.items():
        config = manifest.component(name).config
        library, kind = str(config.get("_library", "diffusers")), str(config.get("_class_name", "ModelMixin"))
        plain[name] = [library, kind]
        where = {"pretrained_model_name_or_path": repo or None, "subfolder": folder, "variant": None, "revision": None}
        modular[name] = [library, kind, where | {"type_hint": [library, kind]}]
    (root / "model_index.json").write_text(json.dumps(plain, indent=2) + "\n")
    (root / "modular_model_index.json").write_text(json.dumps(modular, indent=2) + "\n")


def _folder(component: ComponentManifest, public: Mapping[str, Tensor], folder: Path, shard: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config = {key: value for key, value in component.config.items() if key != "_library"}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    stem = "model" if component.config.get("_library") == "transformers" else "diffusion_pytorch_model"
    groups = _groups(public, shard)
    if len(groups) == 1:
        save_file(dict(public), folder / f"{stem}.safetensors", metadata={"format": "pt"})
        return
    weight_map: dict[str, str] = {}
    for number, keys in enumerate(groups, 1):
        name = f"{stem}-{number:05}-of-{len(groups):05}.safetensors"
        save_file({key: public[key] for key in keys}, folder / name, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(keys, name)
    total = sum(tensor.nbytes for tensor in public.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / f"{stem}.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def _groups(public: Mapping[str, Tensor], shard: int) -> list[list[str]]:
    """Keys in order, a new group whenever the next tensor would not fit; a tensor larger than a shard stands alone."""
    groups: list[list[str]] = [[]]
    size = 0
    for key, tensor in public.items():
        if groups[-1] and size + tensor.nbytes > shard:
            groups.append([])
            size = 0
        groups[-1].append(key)
        size += tensor.nbytes
    return groups
