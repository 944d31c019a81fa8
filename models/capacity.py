"""What each published card costs and what a GPU can hold of it: docs/CAPACITY.md, computed from the cards.

    python -m worldroom.models.capacity docs/CAPACITY.md

Pure arithmetic over `Footprint`s and the data sheets of `devices.py`; measures nothing.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import catalog
from .contract.card import ModelCard
from .contract.footprint import Footprint
from .devices import A100, H100, H200, L40S, RTX_4090, SHARE_OF_PEAK, USABLE, DataSheet
from .holding import GB, ROWS, card_bytes, empty, most

GIB, TERA = 2**30, 10**12
GPUS = (RTX_4090, L40S, A100, H100, H200)


@dataclass(frozen=True, slots=True)
class Holding:
    """Sessions of one card on one GPU, by each limit; 0 by compute = not even one at its own pace."""

    by_memory: int
    by_compute: int

    @property
    def sessions(self) -> int:
        return min(self.by_memory, self.by_compute)


def holding(card: ModelCard, account: Footprint, gpu: DataSheet) -> Holding:
    """Text encoders count as resident; a server that keeps them elsewhere has their bytes to spare."""
    counted = card_bytes(card, account, card.recipe.default.precision)
    by_memory = most(empty(gpu.memory_gb * GB, [counted]), counted) or 0
    return Holding(by_memory, int(SHARE_OF_PEAK * gpu.bf16_tflops * TERA // account.flop_per_second))


def accounts() -> tuple[tuple[ModelCard, Footprint], ...]:
    """Every card of published weights, counted from its sizes, in the catalog's order."""
    found = []
    for name in catalog.names():
        family, card = catalog.family(name)
        published = family.manifest(card) is not None and not card.random_weights
        if published and (account := family.account(card)) is not None:
            found.append((card, account))
    return tuple(found)


def markdown() -> str:
    """The whole page."""
    rows = accounts()
    parts = [_HEAD, _weights(rows), _sessions(rows), _work(rows), _held(rows), _by_hand(rows)]
    return "\n".join(parts)


def _weights(rows: Sequence[tuple[ModelCard, Footprint]]) -> str:
    body = [
        [card.name, *(f"{p.parameters / 1e9:.2f} G ({p.name})" for p in account.parts[:3]), _gib(account.weight_bytes)]
        for card, account in rows
    ]
    body = [[*row[:-1], *[""] * (5 - len(row)), row[-1]] for row in body]
    return "## Weights, bf16\n\n" + _table(["card", "parameters", "", "", "GiB in all"], body)


def _sessions(rows: Sequence[tuple[ModelCard, Footprint]]) -> str:
    body = [
        [
            card.name,
            _gib(account.kv_bytes),
            _gib(account.narrow_kv_bytes) if account.narrow_kv_bytes else "",
            _gib(account.decoder_bytes),
            _gib(account.carry_bytes),
            _gib(account.session_bytes),
            _gib(account.activation_bytes),
        ]
        for card, account in rows
    ]
    head = ["card", "keys and values", "the same in 8 bits", "decoder", "latents", "session", "activations of one row"]
    return "## Bytes of one session at a full window, GiB\n\n" + _table(head, body)


def _work(rows: Sequence[tuple[ModelCard, Footprint]]) -> str:
    body = []
    for card, account in rows:
        steps = " + ".join(f"{s.passes} x {s.flop / TERA:.2f} ({s.name})" for s in account.steps)
        pace = f"{account.flop_per_second / TERA:.1f}"
        body.append([card.name, steps, f"{account.flop_per_chunk / TERA:.1f}", f"{account.chunk_seconds:.3g}", pace])
    head = ["card", "TFLOP of a chunk's steps", "TFLOP a chunk", "seconds a chunk", "TFLOP/s at its own pace"]
    return "## Work of one chunk\n\n" + _table(head, body)


def _held(rows: Sequence[tuple[ModelCard, Footprint]]) -> str:
    body = []
    for card, account in rows:
        held = [holding(card, account, gpu) for gpu in GPUS]
        body.append([card.name, *(f"{h.sessions} ({h.by_memory} / {h.by_compute})" for h in held)])
    head = ["card", *(f"{gpu.title}, {gpu.memory_gb} GB, {gpu.bf16_tflops:.0f} TFLOP/s" for gpu in GPUS)]
    return "## Sessions a GPU can hold (by memory / by compute)\n\n" + _table(head, body)


def _by_hand(rows: Sequence[tuple[ModelCard, Footprint]]) -> str:
    card, account = rows[0]
    gpu = H100
    held = holding(card, account, gpu)
    weights, activations, session = (
        n / 1e9 for n in (account.weight_bytes, account.activation_bytes, account.session_bytes)
    )
    step = min(ROWS, held.by_memory)
    room = USABLE * gpu.memory_gb - weights - step * activations
    pace, peak = account.flop_per_second / TERA, gpu.bf16_tflops
    return f"""## The arithmetic, once by hand: `{card.name}` on one {gpu.title}

    weights {weights:.2f} GB, activations {activations:.2f} GB, a session {session:.2f} GB and {pace:.1f} TFLOP/s
    memory   {USABLE} x {gpu.memory_gb} GB - {weights:.2f} GB - {step} x {activations:.2f} GB = {room:.2f} GB
             {room:.2f} GB / {session:.2f} GB holds {held.by_memory} sessions
    compute  {SHARE_OF_PEAK} x {peak:.0f} TFLOP/s / {pace:.1f} TFLOP/s keeps {held.by_compute} at its own pace
"""


def _gib(count: int) -> str:
    return f"{count / GIB:.2f}"


def _table(head: list[str], body: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body]) + "\n"


_HEAD = f"""# Capacity

Computed from the cards by `python -m worldroom.models.capacity docs/CAPACITY.md`; a test fails when this page is stale.
Nothing here is measured: `worldroom bench model CARD` measures a card on the machine at hand. A multiply and an add are
two FLOPs. Sessions by compute assume that steps reach {SHARE_OF_PEAK:.0%} of the data sheet's dense bf16 rate and that
the device does nothing else (0 = not one at its own pace); sessions by memory use {USABLE:.0%} of the memory, with text
and image encoders resident and a step of {ROWS} rows, or of fewer where fewer sessions fit; `models/holding.py` counts
them, for admission too. Chunk-KV rings hold one entry more than the window, for staging. Keys and values in 8 bits
(`serve --precision bf16-kv8`) have a 32-bit scale per token and head; how far they may be off is in the card's recipe.
`worldroom cards fit CARD --device h100` answers for one card.
"""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(markdown())
