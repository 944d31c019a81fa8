"""An AnyFlow card made ready: random weights for the tiny one, published folders for the others."""

from dataclasses import replace
from pathlib import Path

import torch

from ..checkpoints.check import find
from ..checkpoints.load import digest
from ..contract.card import ModelCard
from ..contract.loaded import LoadedCard
from ..contract.loop import CHUNK_ROLLOUT
from ..contract.recipe import Precision, RuntimeChoice
from ..shared.components import TorchComponents
from ..shared.video.pictures import frames_on
from ..weights import NotPulled
from .loop import AnyFlowCarry, AnyFlowLoop
from .networks import draw
from .networks import load as load_networks
from .runtime import AnyFlowRuntime
from .spec import AnyFlowSpec
from .weights import manifest


def load(spec: AnyFlowSpec, card: ModelCard, choice: RuntimeChoice, checkpoint: Path | None) -> LoadedCard:
    """The card on the best device here; raises `WeightsError`, also when published weights were not pulled."""
    device = torch.device("cuda" if torch.cuda.is_available() and not spec.random else "cpu")
    if checkpoint is None:
        if not spec.random:
            raise NotPulled(card.name)
        networks, weights = draw(spec), "random"
    else:
        made = manifest(spec)
        weights = digest([find(component, checkpoint) for component in made.components])
        networks = load_networks(
            spec, checkpoint, torch.float32 if choice.precision is Precision.FP32 else torch.bfloat16
        )
    for module in (networks.transformer, networks.vae, networks.text_encoder):
        module.to(device)
    frame = frames_on(card.frame, device)
    if choice.invariant:
        networks.invariant()
    runtime = AnyFlowRuntime(networks, device, frame, choice.invariant)
    components = TorchComponents(
        {"transformer": networks.transformer, "vae": networks.vae, "text_encoder": networks.text_encoder},
        prompts=("text_encoder",),
    )
    card, loops = replace(card, frame=frame), {CHUNK_ROLLOUT: AnyFlowLoop(spec)}
    return LoadedCard(card, choice, weights, loops, runtime, AnyFlowCarry, runtime, components=components)
