"""What a Matrix-Game checkpoint must hold. The published transformer's keys carry the wrapper's prefix `model.`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..checkpoints.manifest import CheckpointLayout, ComponentManifest, Manifest, Shape
from ..checkpoints.names import SAME_NAMES
from .spec import LICENCE, MatrixGameSpec, Mode

if TYPE_CHECKING:
    from torch import nn

REPO = "Skywork/Matrix-Game-2.0"
IMAGE_REPO = "FastVideo/Matrix-Game-2.0-Base-Diffusers"
FILES = {
    Mode.UNIVERSAL: "base_distilled_model/base_distill.safetensors",
    Mode.GTA: "gta_distilled_model/gta_keyboard2dim.safetensors",
    Mode.TEMPLE_RUN: "templerun_distilled_model/templerun_7dim_onlykey.safetensors",
}


def manifest(spec: MatrixGameSpec) -> Manifest:
    """Three components; the drawn card has no image encoder to load."""
    repo = "" if spec.random else REPO
    transformer = ComponentManifest(
        "transformer",
        _shapes(lambda: _transformer(spec)),
        (
            CheckpointLayout("original", FILES[spec.mode], SAME_NAMES, repo=repo, prefixes=("model.",)),
            CheckpointLayout("plain", "transformer/diffusion_pytorch_model.safetensors", SAME_NAMES),
        ),
        config={"_class_name": "CausalWanModel"},
    )
    vae = ComponentManifest(
        "vae", _shapes(lambda: _vae(spec)), (CheckpointLayout("original", "Wan2.1_VAE.pth", SAME_NAMES, repo=repo),)
    )
    if spec.random:
        return Manifest(spec.name, (transformer, vae), LICENCE)
    folder = CheckpointLayout(
        "diffusers", "image_encoder", SAME_NAMES, IMAGE_REPO, ignore=(r".*position_ids",), prefixes=("vision_model.",)
    )
    image = ComponentManifest(
        "image_encoder",
        _shapes(_clip),
        (folder,),
        config={"_library": "transformers", "_class_name": "CLIPVisionModel"},
    )
    return Manifest(spec.name, (transformer, vae, image), LICENCE)


def _shapes(build: Callable[[], "nn.Module"]) -> Callable[[], Mapping[str, Shape]]:
    def table() -> Mapping[str, Shape]:
        import torch

        from ..checkpoints.load import shapes

        with torch.device("meta"):
            return shapes(build())

    return table


def _transformer(spec: MatrixGameSpec) -> "nn.Module":
    from .transformer import MatrixGameTransformer

    return MatrixGameTransformer(spec)


def _vae(spec: MatrixGameSpec) -> "nn.Module":
    from ..shared.video.vae import WanVae

    return WanVae(spec.vae)


def _clip() -> "nn.Module":
    from transformers import CLIPVisionConfig, CLIPVisionModel

    config = CLIPVisionConfig(
        hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=16, image_size=224,
        patch_size=14, hidden_act="gelu",
    )  # fmt: skip
    model: nn.Module = CLIPVisionModel(config)
    return model
