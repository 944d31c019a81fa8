"""The drive card made ready from a folder of weight files."""

from pathlib import Path

from ..contract.intercept import intercept
from ..contract.loaded import LoadedCard
from ..contract.loop import CHUNK_ROLLOUT
from ..contract.recipe import RuntimeChoice
from ..shared.components import TorchComponents
from ..shared.road.initial_latents import load_openings
from ..shared.road.text import load_text
from ..weights import digest
from .card import RECIPE, TOKENS, drive_card
from .loop import DriveCarry, DriveLoop
from .memory import CHANNELS
from .runtime import DriveRuntime, load_networks
from .skip import SKIP_BELOW, SkipLastPass


def load_drive(folder: Path, choice: RuntimeChoice | None) -> LoadedCard:
    """`choice` None = the recipe's default. Raises `RecipeMismatch` or `WeightsError`."""
    chosen = choice or RECIPE.default
    RECIPE.check(chosen)
    card = drive_card(chosen.exact)
    transformer, autoencoder = load_networks(folder)
    openings = load_openings(folder / "openings.safetensors", TOKENS, CHANNELS)
    text = load_text(folder / "text.safetensors")
    runtime = DriveRuntime(transformer, autoencoder, text.look)
    files = [folder / component.file for component in card.components]
    loops = {CHUNK_ROLLOUT: DriveLoop(openings)}
    made = card, chosen, digest(files), loops, runtime, DriveCarry, runtime
    components = TorchComponents({"transformer": transformer, "autoencoder": autoencoder})
    loaded = LoadedCard(*made, meaning=text.meaning, shares=True, components=components)
    return loaded if chosen.exact else intercept(loaded, SkipLastPass(SKIP_BELOW))
