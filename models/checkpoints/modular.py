"""A card as diffusers' modular pipelines know one: `modular_model_index.json`, the inverse of what `check.py` reads.

    name -> [library, class, {pretrained_model_name_or_path, subfolder, variant, revision, type_hint}]

Only what diffusers can load stands in it: components that are published in its layout, prompt encoders, tokenizers.
`_worldroom` says which card it is and how its weights may be run, which diffusers passes over.
"""

import json
from pathlib import Path

from ..contract.card import ModelCard
from ..weights import WeightsError
from .manifest import Manifest

INDEX = "modular_model_index.json"
LAYOUT = "diffusers"


def modular_index(card: ModelCard, manifest: Manifest) -> dict[str, object]:
    """The index as JSON knows it."""
    index: dict[str, object] = {"_class_name": "ModularPipeline", "_worldroom": _recipe(card)}
    for component in manifest.components:
        for layout in component.layouts:
            if layout.name == LAYOUT and layout.repo:
                kind = str(component.config.get("_library", "diffusers")), str(component.config["_class_name"])
                index[component.name] = _entry(kind, layout.repo, layout.file, manifest.revision)
    for folder in manifest.folders:
        index[folder.name] = _entry(folder.loads, folder.repo, folder.name, manifest.revision)
    return index


def write_modular_index(card: ModelCard, manifest: Manifest, folder: Path) -> Path:
    """Write it below `folder`; raises `WeightsError` when nothing of the card is published as diffusers loads it."""
    index = modular_index(card, manifest)
    if not any(isinstance(entry, list) for entry in index.values()):
        raise WeightsError(Path(card.name), "nothing of this card is published in a layout that diffusers loads")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / INDEX
    path.write_text(json.dumps(index, indent=2) + "\n")
    return path


def _entry(kind: tuple[str, str], repo: str, folder: str, revision: str) -> list[object]:
    library, name = kind
    where = {
        "type_hint": [library, name],
        "pretrained_model_name_or_path": repo,
        "subfolder": folder,
        "variant": None,
        "revision": revision,
    }
    return [library, name, where]


def _recipe(card: ModelCard) -> dict[str, object]:
    recipe = card.recipe
    return {
        "card": card.name,
        "version": card.version,
        "recipe": recipe.name,
        "method": str(recipe.method),
        "loop": recipe.assumes_loop,
        "sampler": recipe.sampler,
        "sigmas": [list(levels) for levels in recipe.sigmas],
        "precisions": [str(precision) for precision in recipe.precisions],
    }
