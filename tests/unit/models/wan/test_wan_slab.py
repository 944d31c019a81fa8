"""Entries of a slab by a view of another slot than they lie in: what worlds that were one have in common."""

import pytest
import torch
from worldroom.models.wan.slab import RebuiltPast, Slab, SlabPast

RING, LAYERS, TOKENS, HEADS, WIDTH = 4, 2, 3, 2, 8


def filled(narrow: bool) -> Slab:
    """Slot 0 has four chunks, slot 1 nothing."""
    slab = Slab((2, RING, LAYERS, 2, TOKENS, HEADS, WIDTH), torch.float32, torch.device("cpu"), narrow)
    for entry in range(RING):
        slab.write(0, entry, chunk(entry))
    return slab


def chunk(seed: int) -> torch.Tensor:
    return torch.randn(LAYERS, 2, TOKENS, HEADS, WIDTH, generator=torch.Generator().manual_seed(seed))


def kept(slab: Slab, slot: int, entry: int) -> bytes:
    data = slab.read_entry(slot, entry)
    assert isinstance(data, bytes)
    return data


def theirs(entry: int) -> int:
    """An entry of slot 0, as slot 1 counts."""
    return entry - RING


@pytest.mark.parametrize("narrow", [False, True])
def test_a_slot_reads_and_attends_what_lies_in_another(narrow: bool) -> None:
    slab = filled(narrow)
    for own, other in zip(slab.read(0, (1, 3), 1), slab.read(1, (theirs(1), theirs(3)), 1), strict=True):
        assert torch.equal(own, other)
    q = torch.randn(2, TOKENS, HEADS, WIDTH, generator=torch.Generator().manual_seed(9))
    both = SlabPast.of(slab, [(0, (1, 3)), (1, (theirs(1), theirs(3)))], lambda entries: None)
    same = q[:1].expand(2, -1, -1, -1)
    mine, shared = both.attend(0, same, same, same)
    assert torch.equal(mine, shared)
    rebuilt = [
        RebuiltPast(slab, slot, (at,), [chunk(7)], lambda entries: None) for slot, at in ((0, 2), (1, theirs(2)))
    ]
    mine, shared = (past.attend(0, q[:1], q[:1], q[:1]) for past in rebuilt)
    assert torch.equal(mine, shared)


@pytest.mark.parametrize("narrow", [False, True])
def test_what_a_slot_writes_into_its_own_entries_changes_no_other(narrow: bool) -> None:
    slab = filled(narrow)
    before = [kept(slab, 0, entry) for entry in range(RING)]
    slab.write(1, 0, chunk(5))
    assert [kept(slab, 0, entry) for entry in range(RING)] == before
    assert [kept(slab, 1, theirs(entry)) for entry in range(RING)] == before
    slab.write(1, theirs(2), chunk(6))  # nobody has it any more: it is this slot's now
    written = kept(slab, 0, 2)
    assert written == kept(slab, 1, theirs(2)) != before[2]
    slab.write_entry(1, theirs(2), before[2])
    assert kept(slab, 0, 2) == before[2]
