"""A Waypoint card made ready: random weights for the tiny one; published ones are refused with what is missing."""

from dataclasses import replace
from pathlib import Path

from ..contract.card import ModelCard
from ..contract.loaded import LoadedCard
from ..contract.loop import CHUNK_ROLLOUT
from ..contract.recipe import RuntimeChoice
from ..shared.components import TorchComponents
from ..shared.random_weights import draw
from ..shared.video.pictures import frames_on
from ..weights import WeightsError
from .loop import WaypointCarry, WaypointLoop
from .runtime import PatchDecoder, WaypointNetworks, WaypointRuntime
from .spec import MISSING, WaypointSpec
from .transformer import WaypointTransformer


def load(spec: WaypointSpec, card: ModelCard, choice: RuntimeChoice, checkpoint: Path | None) -> LoadedCard:
    """Raises `WeightsError` for published weights: not enough of the network is public."""
    if not spec.random:
        where = checkpoint or Path(card.name)
        raise WeightsError(where, "cannot be loaded, these are not public: " + "; ".join(MISSING))
    networks = random_networks(spec)
    frame = frames_on(card.frame, networks.transformer.read.weight.device)
    if choice.invariant:
        networks.transformer.invariant()
    runtime = WaypointRuntime(spec, networks, frame, choice.invariant)
    return LoadedCard(
        replace(card, frame=frame),
        choice,
        "random",
        {CHUNK_ROLLOUT: WaypointLoop(spec)},
        runtime,
        WaypointCarry,
        runtime,
        runtime,
        adapters=runtime.adapters,
        components=TorchComponents({"transformer": networks.transformer, "decoder": networks.decoder}),
    )


def random_networks(spec: WaypointSpec, seed: int = 1) -> WaypointNetworks:
    networks = WaypointNetworks(WaypointTransformer(spec), PatchDecoder(spec))
    draw(networks.transformer, seed)
    draw(networks.decoder, seed)
    return networks
