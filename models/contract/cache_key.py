"""CacheKey: everything that can change what a cache holds. Prompt features, step caches, compiled blocks and snapshots
are kept under one; what was made under another key is never served.

    key_of(loaded) -> the card as it runs            .part(component, ...) -> one kept thing of it
"""

import hashlib
from collections.abc import Iterable

import msgspec

from .card import ModelCard
from .conditions import AdapterShare
from .loaded import LoadedCard
from .recipe import RuntimeChoice
from .version import CONTRACT_VERSION

Shape = tuple[tuple[int, ...], ...]


class CacheKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Two runs of equal keys make equal bits, on the same device type. A field that says nothing is empty.

    `card`: name@version. `component`: the part that makes what is kept. `weights`: digest over every file that was
    loaded, in order. `adapters`: digests and strengths of a row's low-rank weights. `plan`: recipe and how it is run.
    `shape`: of a chunk, or of what a part is given. `layout`: how values lie (pixels, ring). `inputs`: hashes of what
    went in. `step`: kind or count of steps. `contract`: version of the contract between engine and models.
    """

    card: str
    component: str = ""
    weights: str
    adapters: tuple[str, ...] = ()
    precision: str
    plan: str
    shape: Shape
    layout: str
    sampler: str
    guidance: str = ""
    seed: int | None = None
    inputs: tuple[str, ...] = ()
    step: str = ""
    contract: int = CONTRACT_VERSION

    def part(
        self,
        component: str,
        *,
        inputs: Iterable[str] = (),
        adapters: Iterable[str] = (),
        step: str = "",
        shape: Shape | None = None,
    ) -> "CacheKey":
        """The key of something that a part of this card makes."""
        return msgspec.structs.replace(
            self,
            component=component,
            inputs=tuple(inputs),
            adapters=tuple(adapters),
            step=step,
            shape=self.shape if shape is None else shape,
        )

    @property
    def digest(self) -> str:
        """The key as a short text: equal exactly when every field is equal."""
        return hashlib.sha256(msgspec.msgpack.encode(self)).hexdigest()[:32]

    def differences(self, other: "CacheKey") -> tuple[str, ...]:
        """Names of the fields in which the two differ."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) != getattr(other, name))

    def __str__(self) -> str:
        return " ".join(
            f"{name}={value}" for name in self.__struct_fields__ if (value := getattr(self, name)) not in ("", (), None)
        )


def key_of(loaded: LoadedCard) -> CacheKey:
    """Of a card as it is loaded. Each session asks for its own number of denoise steps, so that is no part of it."""
    return card_key(loaded.card, loaded.choice, loaded.weights, loaded.guidance)


def card_key(card: ModelCard, choice: RuntimeChoice, weights: str, guidance: str = "") -> CacheKey:
    """The same while the card is being loaded."""
    frame, cache = card.frame, card.cache
    ring = (
        ""
        if cache is None
        else f" ring {cache.ring} rebuild {cache.rebuild} sink {cache.sink} x {cache.bytes_per_entry}"
    )
    return CacheKey(
        card=f"{card.name}@{card.version}",
        weights=weights,
        precision=str(choice.precision),
        plan=f"{card.recipe.name} {choice.mode or 'exact'}",
        shape=((frame.per_chunk, frame.height, frame.width),),
        layout=f"{frame.pixels}{ring}",
        sampler=choice.sampler,
        guidance=guidance,
    )


def adapter_keys(shares: Iterable[AdapterShare]) -> tuple[str, ...]:
    """A row's adapters as its keys name them."""
    return tuple(f"{share.key}*{share.scale!r}" for share in shares)


def content_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
