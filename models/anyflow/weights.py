"""What an AnyFlow checkpoint must hold: three diffusers and transformers folders, under their own names.

`encoder.embed_tokens.weight` of UMT5 is the shared table under a second name and may be left out of the files.
"""

from collections.abc import Callable, Mapping

from ..checkpoints.manifest import (
    TOKENIZER,
    TOKENIZER_FILES,
    CheckpointLayout,
    ComponentManifest,
    FolderManifest,
    Manifest,
    Shape,
)
from ..checkpoints.names import SAME_NAMES
from .spec import LICENCE, AnyFlowSpec

_REPOS = {
    "anyflow-far-1.3b": "nvidia/AnyFlow-FAR-Wan2.1-1.3B-Diffusers",
    "anyflow-far-14b": "nvidia/AnyFlow-FAR-Wan2.1-14B-Diffusers",
}
_CLASSES = {
    "transformer": ("diffusers", "AnyFlowFARTransformer3DModel"),
    "vae": ("diffusers", "AutoencoderKLWan"),
    "text_encoder": ("transformers", "UMT5EncoderModel"),
}
_TIED = "encoder.embed_tokens.weight"


def manifest(spec: AnyFlowSpec) -> Manifest:
    """The tokenizer's files are no weights: `cards pull` fetches them with the text encoder's repository."""
    repo = _REPOS.get(spec.name, "")
    components = tuple(
        ComponentManifest(
            name,
            _expects(spec, name),
            (CheckpointLayout("diffusers", name, SAME_NAMES, repo=repo, ignore=(_TIED.replace(".", r"\."),)),),
            config={"_library": library, "_class_name": kind},
        )
        for name, (library, kind) in _CLASSES.items()
    )
    return Manifest(
        spec.name,
        components,
        LICENCE,
        folders=(FolderManifest("tokenizer", repo, TOKENIZER_FILES, TOKENIZER),) if repo else (),
    )


def _expects(spec: AnyFlowSpec, component: str) -> Callable[[], Mapping[str, Shape]]:
    def table() -> Mapping[str, Shape]:
        import torch

        from ..checkpoints.load import shapes
        from .networks import build

        with torch.device("meta"):
            found = shapes(build(spec, component))
        return {key: shape for key, shape in found.items() if key != _TIED}

    return table
