"""A card without a model, for long simulations: two denoise steps, a commit, a decode, black frames of 2 x 2 pixels."""

from worldroom.models.contract.cache import CacheSpec
from worldroom.models.contract.card import FrameSpec, LoopSpec, ModelCard, Parity
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.recipe import Method, Precision, RecipeSpec, RuntimeChoice
from worldroom.simulation.card import simulated

STEPS = (StepKind.DENOISE, StepKind.DENOISE, StepKind.COMMIT, StepKind.DECODE)


def sim_card(name: str, per_chunk: int = 2, fps: int = 2) -> LoadedCard:
    choice = RuntimeChoice("none", 2, Precision.INT)
    recipe = RecipeSpec(name, "none", ((1.0, 0.5),), (Precision.INT,), choice, (), "none", "none", Method.WRITTEN)
    card = ModelCard(
        name=name,
        version="1",
        family="sim",
        title=name,
        components=(),
        loops=(LoopSpec("chunk_rollout", STEPS[1:]),),
        recipe=recipe,
        parity=Parity(exact=True, tolerance=0.0),
        frame=FrameSpec(2, 2, 1, fps, per_chunk),
        controls=(),
        cache=CacheSpec(ring=3, bytes_per_entry=8),
        suggestions=("nothing",),
    )
    return simulated(card, STEPS)
