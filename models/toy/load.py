"""A toy card made ready: its loops by name, and the runtime that both share."""

from ..contract.card import ModelCard
from ..contract.loaded import AnyLoop, LoadedCard
from ..contract.recipe import RuntimeChoice
from .loop import ToyCarry, ToyLoop
from .narrator import NarratorCarry, NarratorLoop
from .runtime import ToyRuntime


def toy_loaded(card: ModelCard, choice: RuntimeChoice, runtime: ToyRuntime) -> LoadedCard:
    """`card`: the toy, with or without its narrator."""
    main = ToyLoop(runtime.spec)
    if card.prompt_loop is None:
        return LoadedCard(card, choice, "none", {card.main_loop: main}, runtime, ToyCarry, runtime, shares=True)
    loops: dict[str, AnyLoop] = {card.main_loop: main, card.prompt_loop: NarratorLoop()}
    return LoadedCard(card, choice, "none", loops, runtime, ToyCarry, runtime, prompt_carry=NarratorCarry, shares=True)
