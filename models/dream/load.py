"""The dream card made ready from a folder of weight files."""

from pathlib import Path

from ..contract.loaded import LoadedCard
from ..contract.loop import CHUNK_ROLLOUT
from ..contract.recipe import RuntimeChoice
from ..shared.components import TorchComponents
from ..shared.road.initial_latents import load_openings
from ..shared.road.text import load_text
from ..weights import digest
from .card import CHANNELS, PICTURE_TOKENS, RECIPE, dream_card
from .loop import DreamCarry, DreamLoop
from .runtime import DreamRuntime, load_networks


def load_dream(folder: Path, choice: RuntimeChoice | None) -> LoadedCard:
    """`choice` None = the recipe's default. Raises `RecipeMismatch` or `WeightsError`."""
    chosen = choice or RECIPE.default
    RECIPE.check(chosen)
    card = dream_card()
    openings = load_openings(folder / "openings.safetensors", PICTURE_TOKENS, CHANNELS)
    text = load_text(folder / "text.safetensors")
    transformer, autoencoder = load_networks(folder)
    runtime = DreamRuntime(transformer, autoencoder, text.look)
    files = [folder / component.file for component in card.components]
    loops = {CHUNK_ROLLOUT: DreamLoop(openings)}
    components = TorchComponents({"transformer": transformer, "autoencoder": autoencoder})
    made = card, chosen, digest(files), loops, runtime, DreamCarry, runtime
    return LoadedCard(*made, meaning=text.meaning, shares=True, components=components)
