"""Weights that left the device and came back are the same, bit for bit, and so is what they compute."""

from pathlib import Path

import pytest
import torch
from torch import nn
from worldroom.engine.caches.weights_io import DropComponent, WriteWeights, move, taking
from worldroom.engine.weights.away import WeightsAway, put_away
from worldroom.models import catalog
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.shared.components import TorchComponents

CARDS = (*catalog.random_weights(), "drive", "dream")


def back(loaded: LoadedCard, away: WeightsAway) -> None:
    assert loaded.components is not None
    for component in loaded.components.sizes:
        for start, data in away.slices(loaded, component):
            move(loaded, WriteWeights(component, start, data))


def computed(loaded: LoadedCard) -> bytes:
    """Results of every step that the card's main loop asks for."""
    loaded.runtime.allocate(2)
    made = b""
    for kind in loaded.card.loops[0].steps:
        rows, views = zip(*loaded.runtime.warm_up_rows(kind, 2), strict=True)
        for result in loaded.runtime.execute(kind, rows, views):
            parts = [getattr(result, name, None) for name in result.__struct_fields__]
            made += b"".join(p.float().numpy().tobytes() for p in parts if isinstance(p, torch.Tensor))
            made += b"".join(p.tobytes() for p in parts if hasattr(p, "tobytes"))
    return made


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("memory", [1 << 40, 0], ids=["host memory", "disk"])
def test_what_came_back_computes_the_same_bits(name: str, memory: int, tmp_path: Path) -> None:
    loaded, away = catalog.load(name), WeightsAway(memory, tmp_path)
    assert loaded.components is not None and sum(loaded.components.sizes.values()) > 0
    before = computed(loaded)
    put_away(loaded, away, move)
    size = sum(loaded.components.sizes.values())
    assert (away.bytes_used, away.bytes_on_disk) == ((size, 0) if memory else (0, size))
    back(loaded, away)
    assert len(before) > 1000 and computed(loaded) == before
    away.close()


def test_weights_that_are_away_hold_no_memory_and_tied_ones_stay_tied() -> None:
    tied = nn.ModuleDict({"one": nn.Linear(8, 8, bias=False), "other": nn.Linear(8, 8, bias=False)})
    tied["other"].weight = tied["one"].weight
    parts = TorchComponents({"both": tied, "none": None})
    assert parts.sizes == {"both": 256}
    buffer = parts.buffer(256)
    parts.read("both", 0, buffer)
    parts.drop("both")
    assert tied["one"].weight.untyped_storage().nbytes() == 0
    for start in range(0, 256, 100):
        parts.write("both", start, buffer[start : start + 100])
    assert tied["one"].weight.untyped_storage().data_ptr() == tied["other"].weight.untyped_storage().data_ptr()
    assert tied["one"].weight.detach().numpy().tobytes() == buffer.tobytes()


def test_captured_passes_forget_weights_that_left() -> None:
    heard = []
    parts = TorchComponents({"one": nn.Linear(2, 2)}, moved=lambda: heard.append(True))
    parts.drop("one")
    assert heard == [True]


def test_a_card_that_has_no_components_says_so() -> None:
    with pytest.raises(RuntimeError, match="the weights of 'toy' cannot leave the device"):
        move(catalog.load("toy"), DropComponent("transformer"))


SLICED = [name for name in catalog.random_weights() if catalog.card(name).cache is not None]


@pytest.mark.parametrize("name", SLICED)
def test_slots_that_are_taken_entry_by_entry_are_as_empty_as_those_taken_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = catalog.load(name)
    assert loaded.slab is not None and loaded.card.cache is not None
    rows = [*taking(loaded, 2)]
    assert len(rows) == 1 + 2 * loaded.card.cache.ring, "every entry is a step"
    monkeypatch.setattr(torch, "empty", lambda size, dtype, device: torch.full(size, 99, dtype=dtype, device=device))
    move(loaded, rows[0])
    monkeypatch.undo()
    assert any(_held(loaded)), "there is something to clear"
    for row in rows[1:]:
        move(loaded, row)
    assert not any(_held(loaded))


def _held(loaded: LoadedCard) -> bytes:
    """All bytes of two slots."""
    assert loaded.slab is not None and loaded.card.cache is not None
    parts = [loaded.slab.read_entry(slot, entry) for slot in range(2) for entry in range(loaded.card.cache.ring)]
    extra = () if loaded.extra is None else (*loaded.extra.read_extra(0), *loaded.extra.read_extra(1))
    return b"".join(part for part in (*parts, *extra) if isinstance(part, bytes))
