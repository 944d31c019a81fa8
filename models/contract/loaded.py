"""A card made ready on a device: what `models/catalog.py` hands to the engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import msgspec

from .card import ModelCard
from .conditions import PromptMeaning
from .faults import CardFault
from .loop import ChunkLoop, PromptLoop, Runtime
from .recipe import RuntimeChoice

AnyLoop = ChunkLoop[Any, Any, Any, Any] | PromptLoop[Any, Any, Any, Any]


class SlabIO(Protocol):
    """A runtime's cache as bytes, for snapshots. Called on the device's thread only, between steps."""

    def read_entry(self, slot: int, entry: int) -> bytes: ...

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        """Raises ValueError on data of another length than `read_entry` gives."""
        ...


class SessionExtra(Protocol):
    """What a runtime keeps of a session beside its ring entries, as bytes; called like a `SlabIO`."""

    def read_extra(self, slot: int) -> bytes: ...

    def write_extra(self, slot: int, data: bytes) -> None:
        """Raises ValueError on data of another length than `read_extra` gives."""
        ...


_CHUNK_METHODS = ("init", "next", "advance", "finalize", "early_carry", "rebase")
_PROMPT_METHODS = ("init", "next", "advance", "finalize")


def check_loops(card: ModelCard, loops: Mapping[str, object]) -> None:
    """Raise `CardFault` unless `loops` are the card's, each with all methods of its protocol."""
    if set(loops) != {loop.name for loop in card.loops}:
        raise CardFault(
            card.name, "loops", f"{sorted(loops)} were loaded, the card names {[x.name for x in card.loops]}"
        )
    for name, loop in loops.items():
        methods = _CHUNK_METHODS if name == card.main_loop else _PROMPT_METHODS
        if missing := [method for method in methods if method not in dir(loop)]:
            raise CardFault(card.name, f"loops.{name}", f"{type(loop).__name__} has no method {', '.join(missing)}")


@dataclass(frozen=True, slots=True)
class LoadedCard:
    """The (recipe, runtime) pair: `choice` has passed `card.recipe.check`, `weights` is a digest of the weight files.

    `loops`: those the card names, by name. Row, result, state and carry types are the family's own; the engine only
    passes them on. `carry` and `slab` (and `extra`, where a runtime keeps more) make its worlds portable: without them
    a session can only be remade from its beginning. `state`: of its main loop; with it a chunk under way can be written
    down after each step. `prompt_carry`: of its prompt loop. `meaning`: which words of a prompt count, where the family
    can tell. Raises `CardFault` when the loops are not the card's.
    """

    card: ModelCard
    choice: RuntimeChoice
    weights: str
    loops: Mapping[str, AnyLoop]
    runtime: Runtime[Any, Any]
    carry: type[msgspec.Struct] | None = None
    slab: SlabIO | None = None
    extra: SessionExtra | None = None
    state: type[msgspec.Struct] | None = None
    prompt_carry: type[msgspec.Struct] | None = None
    meaning: Callable[[str], PromptMeaning] | None = None

    def __post_init__(self) -> None:
        check_loops(self.card, self.loops)
        self.card.recipe.check(self.choice)

    @property
    def loop(self) -> ChunkLoop[Any, Any, Any, Any]:
        """The main loop."""
        return cast(ChunkLoop[Any, Any, Any, Any], self.loops[self.card.main_loop])

    @property
    def prompt_loop(self) -> PromptLoop[Any, Any, Any, Any] | None:
        """The loop that writes prompts, if there is one."""
        name = self.card.prompt_loop
        return None if name is None else cast(PromptLoop[Any, Any, Any, Any], self.loops[name])
