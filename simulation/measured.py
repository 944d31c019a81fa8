"""Prices that were measured: the sheet that `worldroom serve` keeps of a card, or what `worldroom bench model` printed.

    ~/.cache/worldroom/prices/CARD-....json     written by a server after warm-up and while it serves
    worldroom bench model CARD --rows 1 --rows 2 --rows 4 --json > FILE

A price is the median. What a step takes is drawn from all that were measured (server), or evenly from between the least
and the largest time (bench).
"""

import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..engine.cost_store import BYTES_MAX, PriceSheet
from ..models import catalog
from ..models.contract.card import ModelCard
from ..models.contract.loop import StepKind
from .prices import CardPrices, StepPrice
from .roofline import ENCODE_PER_PIXEL, ORDER


class BadSheet(ValueError):
    """The file is no price sheet, or has no prices of that card."""


class _Times(msgspec.Struct, frozen=True):
    median_ms: float


class _Rows(msgspec.Struct, frozen=True):
    kind: str
    rows: int
    together: _Times


class _Step(msgspec.Struct, frozen=True):
    kind: str
    per_chunk: float
    min_ms: float
    median_ms: float
    max_ms: float


class _Model(msgspec.Struct, frozen=True):
    card: str
    device: str
    prompt_ms: float
    figures: tuple[_Step, ...]
    batches: tuple[_Rows, ...] = ()


class _Bench(msgspec.Struct, frozen=True):
    """Of `worldroom bench model --json`, what is needed here."""

    models: tuple[_Model, ...]


def measured(path: Path, names: Sequence[str]) -> tuple[CardPrices, ...]:
    """Prices of these cards, in their order. Raises `BadSheet`, `OSError` or `catalog.UnknownCard`."""
    if path.stat().st_size > BYTES_MAX:
        raise BadSheet(f"{path} has more than {BYTES_MAX} bytes")
    data = path.read_bytes()
    try:
        sheet = _decoded(data)
    except msgspec.MsgspecError as problem:
        raise BadSheet(
            f"{path} is no price sheet of a server and no report of `bench model --json`: {problem}"
        ) from None
    return tuple(_prices(sheet, catalog.card(name), path) for name in names)


def _decoded(data: bytes) -> PriceSheet | _Bench:
    try:
        return msgspec.json.decode(data, type=PriceSheet)
    except msgspec.ValidationError:
        return msgspec.json.decode(data, type=_Bench)


def _prices(sheet: PriceSheet | _Bench, card: ModelCard, path: Path) -> CardPrices:
    match sheet:
        case PriceSheet():
            if sheet.of.removeprefix("card=").split("@")[0] != card.name:
                raise BadSheet(f"{path} holds prices of {sheet.of}, not of '{card.name}'")
            return _of_server(sheet, card)
        case _Bench():
            model = next((model for model in sheet.models if model.card == card.name), None)
            if model is None:
                raise BadSheet(
                    f"{path} holds prices of {', '.join(m.card for m in sheet.models)}, not of '{card.name}'"
                )
            return _of_bench(model, card)


def _of_server(sheet: PriceSheet, card: ModelCard) -> CardPrices:
    default = card.recipe.default.steps
    chunk = next((chunk for chunk in sheet.chunks if chunk.steps == default), None)
    if chunk is None:
        raise BadSheet(f"no chunk of {default} steps was measured for '{card.name}'")
    shapes = {kind: shape for _, kind, shape in chunk.profile}
    steps = {}
    for kind in dict.fromkeys(step.kind for step in sheet.steps):
        mine = [s for s in sheet.steps if s.kind is kind and s.shape == shapes.get(kind, s.shape)]
        by_rows = {step.rows: [micros / 1e6 for micros in step.took_us] for step in mine}
        steps[kind] = _price(kind, by_rows)
    return CardPrices(
        card,
        f"measured: {sheet.of.split(' on ')[-1]}",
        tuple(kind for _, kind, _ in chunk.profile),
        steps,
        statistics.median(sheet.encode_us) / 1e6,
        catalog.counted(card.name),
    )


def _of_bench(model: _Model, card: ModelCard) -> CardPrices:
    counts = {StepKind(step.kind): round(step.per_chunk) for step in model.figures}
    steps = {StepKind.PROMPT_ENCODE: StepPrice(StepKind.PROMPT_ENCODE, ((1, model.prompt_ms / 1e3),))}
    for step in model.figures:
        more = {b.rows: b.together.median_ms / 1e3 for b in model.batches if b.kind == step.kind and b.rows > 1}
        evenly = [step.min_ms + (step.max_ms - step.min_ms) * i / 9 for i in range(10)]
        scatter = tuple(each / step.median_ms for each in evenly) if step.median_ms > 0 else (1.0,)
        by_rows = ((1, step.median_ms / 1e3), *sorted(more.items()))
        steps[StepKind(step.kind)] = StepPrice(StepKind(step.kind), by_rows, scatter)
    kinds = [kind for kind in ORDER for _ in range(counts.get(kind, 0))]
    encode = ENCODE_PER_PIXEL * card.frame.shown_width * card.frame.shown_height
    return CardPrices(card, f"measured: {model.device}", tuple(kinds), steps, encode, catalog.counted(card.name))


def _price(kind: StepKind, by_rows: dict[int, list[float]]) -> StepPrice:
    """By the median of each count; the scatter is that of the smallest one."""
    least = min(by_rows)
    usual = statistics.median(by_rows[least])
    scatter = tuple(seconds / usual for seconds in by_rows[least]) if usual > 0 else (1.0,)
    return StepPrice(kind, tuple((rows, statistics.median(times)) for rows, times in sorted(by_rows.items())), scatter)
