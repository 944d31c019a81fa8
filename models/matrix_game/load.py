"""A Matrix-Game card made ready: random weights for the tiny one, published files for the others."""

from dataclasses import replace
from pathlib import Path

import torch

from ..checkpoints import load as checkpoints
from ..contract.card import ModelCard
from ..contract.loaded import LoadedCard
from ..contract.loop import CHUNK_ROLLOUT
from ..contract.recipe import Precision, RuntimeChoice
from ..shared.components import TorchComponents
from ..shared.random_weights import draw
from ..shared.video.pictures import frames_on
from ..shared.video.vae import WanVae
from ..weights import NotPulled
from .loop import MatrixGameCarry, MatrixGameLoop
from .runtime import MatrixGameNetworks, MatrixGameRuntime
from .spec import MatrixGameSpec
from .transformer import MatrixGameTransformer
from .vision import ClipVision, DrawnVision
from .weights import manifest


def load(spec: MatrixGameSpec, card: ModelCard, choice: RuntimeChoice, checkpoint: Path | None) -> LoadedCard:
    """On the best device here; raises `WeightsError`, also when published weights were not pulled."""
    if checkpoint is None:
        if not spec.random:
            raise NotPulled(card.name)
        networks, weights = random_networks(spec), "random"
    else:
        networks, weights = published(spec, choice, checkpoint)
    frame = frames_on(card.frame, networks.transformer.patch_embedding.weight.device)
    if choice.invariant:
        networks.transformer.invariant()
    runtime = MatrixGameRuntime(spec, networks, frame, choice.invariant)
    components = TorchComponents(
        {"transformer": networks.transformer, "vae": networks.vae, "image_encoder": networks.image_encoder.network}
    )
    return LoadedCard(
        replace(card, frame=frame),
        choice,
        weights,
        {CHUNK_ROLLOUT: MatrixGameLoop(spec)},
        runtime,
        MatrixGameCarry,
        runtime,
        adapters=runtime.adapters,
        components=components,
    )


def random_networks(spec: MatrixGameSpec, seed: int = 1) -> MatrixGameNetworks:
    """Networks of the card's size with random weights."""
    transformer, vae = MatrixGameTransformer(spec), WanVae(spec.vae)
    draw(transformer, seed)
    draw(vae, seed)
    return MatrixGameNetworks(transformer, vae, DrawnVision(spec))


def published(spec: MatrixGameSpec, choice: RuntimeChoice, root: Path) -> tuple[MatrixGameNetworks, str]:
    """From a checkpoint's root, and the digest of what was read."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.float32 if choice.precision is Precision.FP32 else torch.bfloat16
    with torch.device(device):
        transformer, vae = MatrixGameTransformer(spec).to(dtype), WanVae(spec.vae).to(dtype)
    made = manifest(spec)
    found = [
        checkpoints.load_component(made.component(name), root, module)
        for name, module in (("transformer", transformer), ("vae", vae))
    ]
    for module in (transformer, vae):
        module.eval().requires_grad_(False)
    encoder = DrawnVision(spec) if spec.random else ClipVision.load(root / "image_encoder", dtype)
    return MatrixGameNetworks(transformer, vae, encoder), checkpoints.digest(found)
