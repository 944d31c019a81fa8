"""A card made ready on a device: what `models/catalog.py` hands to the engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import msgspec

from .adapters import AdapterHost
from .card import ModelCard
from .components import ComponentWeights
from .conditions import PromptMeaning
from .faults import CardFault
from .footprint import Footprint
from .loop import ChunkLoop, PromptLoop, Runtime
from .recipe import RuntimeChoice

AnyLoop = ChunkLoop[Any, Any, Any, Any] | PromptLoop[Any, Any, Any, Any]


class PendingBytes(Protocol):
    """Bytes on their way from a device to the host, beside its compute."""

    def wait(self) -> bytes:
        """The bytes, once they are there; on any thread, but not on the device's."""
        ...


Copied = bytes | PendingBytes


class SlabIO(Protocol):
    """A runtime's cache as bytes, for snapshots. Called on the device's thread only, between steps."""

    def read_entry(self, slot: int, entry: int) -> Copied: ...

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        """Raises ValueError on data of another length than `read_entry` gives."""
        ...


@runtime_checkable
class SlicedSlots(SlabIO, Protocol):
    """A slab whose memory is taken at once and cleared entry by entry, so that nobody waits for all of it; another one
    is allocated as a whole.
    """

    def reserve(self, slots: int) -> None:
        """Like `Runtime.allocate`, with anything in it: no step runs before every entry is cleared."""
        ...

    def clear_entry(self, slot: int, entry: int) -> None: ...


class SessionExtra(Protocol):
    """What a runtime keeps of a session beside its ring entries, as bytes; called like a `SlabIO`.

    In parts, so that those that are as they were need not be written down again.
    """

    def read_extra(self, slot: int) -> tuple[Copied, ...]: ...

    def write_extra(self, slot: int, data: tuple[bytes, ...]) -> None:
        """Raises ValueError on data of other lengths than `read_extra` gives."""
        ...


_CHUNK_METHODS = ("init", "next", "advance", "finalize", "early_carry", "rebase")
_PROMPT_METHODS = ("init", "next", "advance", "finalize")
_RUNTIME_METHODS = ("allocate", "execute", "encode_prompt", "warm_up_rows")
_SLAB_METHODS = ("read_entry", "write_entry")
_EXTRA_METHODS = ("read_extra", "write_extra")


def check_loops(card: ModelCard, loops: Mapping[str, object]) -> None:
    """Raise `CardFault` unless `loops` are the card's, each with all methods of its protocol."""
    named = [loop.name for loop in card.loops]
    if set(loops) != set(named):
        raise CardFault(card.name, "loops", f"{sorted(loops)} were loaded, the card names {named}")
    for name, loop in loops.items():
        check_methods(card, f"loops.{name}", loop, _CHUNK_METHODS if name == card.main_loop else _PROMPT_METHODS)


def check_methods(card: ModelCard, field: str, part: object, methods: tuple[str, ...]) -> None:
    """Raise `CardFault` with the methods that a part lacks."""
    if missing := [method for method in methods if method not in dir(part)]:
        raise CardFault(card.name, field, f"{type(part).__name__} has no method {', '.join(missing)}")


@dataclass(frozen=True, slots=True)
class LoadedCard:
    """The (recipe, runtime) pair: `choice` has passed `card.recipe.check`, `weights` is a digest of the weight files.

    `loops`: those the card names, by name. Row, result, state and carry types are the family's own; the engine only
    passes them on. `carry` and `slab` (and `extra`, where a runtime keeps more) make its worlds portable: without them
    a session can only be remade from its beginning. `state`: of its main loop; with it a chunk under way can be written
    down after each step. `shares`: its runtime reads entries where they lie, also in other slots (`cache.place`); a
    card without it copies what a fork shares. `prompt_carry`: of its prompt loop. `meaning`: which words of a prompt
    count, where the family can tell. `footprint`: of published weights, at the recipe's default precision. `guidance`:
    how its loop guides, where it does. `adapters`: where low-rank weights may stand beside its own. `components`: where
    its weights can leave the device and come back, and whether a GPU does its work. Raises `CardFault` when the loops
    are not the card's.
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
    footprint: Footprint | None = None
    guidance: str = ""
    adapters: AdapterHost | None = None
    components: ComponentWeights | None = None
    shares: bool = False

    def __post_init__(self) -> None:
        check_loops(self.card, self.loops)
        check_methods(self.card, "runtime", self.runtime, _RUNTIME_METHODS)
        if self.state is not None and self.card.cache is not None:
            raise CardFault(
                self.card.name, "state", "a chunk whose steps write a cache cannot be written down under way"
            )
        if self.slab is not None:
            check_methods(self.card, "slab", self.slab, _SLAB_METHODS)
        if self.extra is not None:
            check_methods(self.card, "extra", self.extra, _EXTRA_METHODS)
        self.card.recipe.check(self.choice)

    @property
    def loop(self) -> ChunkLoop[Any, Any, Any, Any]:
        """The main loop."""
        return cast(ChunkLoop[Any, Any, Any, Any], self.loops[self.card.main_loop])

    @property
    def on_gpu(self) -> bool:
        """A GPU does its work; else the thread that calls it does."""
        return self.components is not None and self.components.on_gpu

    @property
    def prompt_loop(self) -> PromptLoop[Any, Any, Any, Any] | None:
        """The loop that writes prompts, if there is one."""
        name = self.card.prompt_loop
        return None if name is None else cast(PromptLoop[Any, Any, Any, Any], self.loops[name])
