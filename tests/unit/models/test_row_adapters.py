"""Adapters in networks that are played: rows with different stacks share passes and keep the bits they have alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import nn
from worldroom.models import catalog
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.conditions import AdapterShare
from worldroom.models.contract.loop import StepKind
from worldroom.models.matrix_game import load as matrix_game
from worldroom.models.matrix_game import spec as matrix_game_spec
from worldroom.models.matrix_game.loop import MatrixGameRow
from worldroom.models.matrix_game.loop import PassRow as MatrixGamePass
from worldroom.models.matrix_game.runtime import MatrixGameRuntime
from worldroom.models.shared import lora_file
from worldroom.models.shared.adapters import Stack, UnknownAdapter
from worldroom.models.waypoint import load as waypoint
from worldroom.models.waypoint import spec as waypoint_spec
from worldroom.models.waypoint.loop import PassRow as WaypointPass
from worldroom.models.waypoint.loop import WaypointRow
from worldroom.models.waypoint.runtime import WaypointRuntime
from worldroom.tests.lora_files import MATRIX_GAME, WAYPOINT, layers, peft_file

pytestmark = pytest.mark.usefixtures("one_thread")

SNOW, RAIN = (AdapterShare("snow", 0.75),), (AdapterShare("rain", -1.0), AdapterShare("snow", 0.5))
STACKS: list[Stack] = [SNOW, RAIN, (), SNOW]
X = {MATRIX_GAME: "x_CFHW", WAYPOINT: "x_TC"}
PlayedRuntime = MatrixGameRuntime | WaypointRuntime
cards = pytest.mark.parametrize("card", [MATRIX_GAME, WAYPOINT])


def built(card: str, invariant: bool) -> tuple[PlayedRuntime, nn.Module]:
    """And its transformer."""
    frame = catalog.card(card).frame
    made: PlayedRuntime
    transformer: nn.Module
    if card == MATRIX_GAME:
        networks = matrix_game.random_networks(matrix_game_spec.tiny())
        transformer = networks.transformer
        if invariant:
            networks.transformer.invariant()
        made = MatrixGameRuntime(matrix_game_spec.tiny(), networks, frame, invariant)
    else:
        drawn = waypoint.random_networks(waypoint_spec.tiny())
        transformer = drawn.transformer
        if invariant:
            drawn.transformer.invariant()
        made = WaypointRuntime(waypoint_spec.tiny(), drawn, frame, invariant)
    made.allocate(len(STACKS))
    return made, transformer


def attached(card: str, folder: Path, invariant: bool = True) -> PlayedRuntime:
    made, _ = built(card, invariant)
    for seed, name in enumerate(("snow", "rain")):
        file = peft_file(folder / f"{name}.safetensors", seed, 4 + seed, card)
        made.adapters.attach(name, made.adapters.read(file))
    return made


def played(made: PlayedRuntime, card: str, stacks: dict[int, Stack]) -> dict[int, tuple[bytes, torch.Tensor]]:
    """By slot: what a commit wrote, and what a denoise step that sees it came to. A slot's picture is its own."""
    results = []
    for kind in (StepKind.COMMIT, StepKind.DENOISE):
        rows: list[Any] = []
        views = []
        for slot, stack in stacks.items():
            ((row, view),) = made.warm_up_rows(kind, 1)
            assert view is not None
            dice = torch.Generator().manual_seed(slot)
            x = torch.randn(getattr(row, X[card]).shape, generator=dice)
            rows.append(msgspec.structs.replace(row, adapters=stack, **steered(row), **{X[card]: x}))
            sees = view.committed if kind is StepKind.COMMIT else (*view.committed[1:], view.staged)
            views.append(CacheView(slot, sees, view.staged if kind is StepKind.COMMIT else view.committed[0]))
        results.append((made.execute(kind, rows, views), views))
    (_, written), (made_of, _) = results
    return {
        slot: (_bytes(made, slot, view.staged), getattr(result, X[card]))
        for slot, view, result in zip(stacks, written, made_of, strict=True)
    }


def steered(row: MatrixGameRow | WaypointRow) -> dict[str, Any]:
    """Keys that are held, and a picture that is not grey."""
    match row:
        case MatrixGamePass(world=world):
            image = torch.randn(world.image_IM.shape, generator=torch.Generator().manual_seed(7))
            seen = msgspec.structs.replace(world, image_IM=image)
            return {"world": seen, "keyboard_AK": row.keyboard_AK + 1, "mouse_A2": row.mouse_A2 + 1}
        case WaypointPass():
            return {"control_C": row.control_C + 1}
    raise TypeError(f"{type(row).__name__} is no pass")


def _bytes(made: PlayedRuntime, slot: int, entry: int) -> bytes:
    held = made.read_entry(slot, entry)
    return held if isinstance(held, bytes) else held.wait()


@cards
def test_in_the_invariant_form_rows_with_different_stacks_have_the_bits_they_have_alone(
    card: str, tmp_path: Path
) -> None:
    made = attached(card, tmp_path)
    together = played(made, card, dict(enumerate(STACKS)))
    for slot, stack in enumerate(STACKS):
        ((written, x),) = played(made, card, {slot: stack}).values()
        assert (written, x.tolist()) == (together[slot][0], together[slot][1].tolist()), slot
    ((written, x),) = played(built(card, invariant=True)[0], card, {2: ()}).values()
    assert written == together[2][0] and torch.equal(x, together[2][1]), "a row without any is as it always was"
    assert together[0][0] != played(made, card, {0: ()})[0][0], "a stack is in the keys and values that are kept"


@cards
@pytest.mark.parametrize("invariant", [True, False])
def test_a_stack_is_what_merged_weights_are_within_tolerance(card: str, invariant: bool, tmp_path: Path) -> None:
    together = played(attached(card, tmp_path, invariant), card, dict(enumerate(STACKS)))
    reference, transformer = built(card, invariant=False)
    for share in RAIN:
        read = lora_file.read_file(tmp_path / f"{share.key}.safetensors", layers(card))
        scaled = {layer: replace(pair, scale=pair.scale * share.scale) for layer, pair in read.pairs.items()}
        lora_file.merge(transformer, lora_file.LowRank(scaled))
    wanted = played(reference, card, {1: ()})[1][1]
    apart = (together[1][1] - wanted).abs().max()
    print(f"\n{card}, {'invariant' if invariant else 'plain'}: {apart:.1e} at most from merged weights")
    torch.testing.assert_close(together[1][1], wanted, atol=5e-5, rtol=1e-4)
    plain = played(built(card, invariant=False)[0], card, {1: ()})[1][1]
    assert not torch.allclose(together[1][1], plain, atol=1e-3), "the stack changes what the row becomes"


@cards
def test_a_swap_is_never_answered_with_what_another_stack_made(card: str, tmp_path: Path) -> None:
    """Nor are modulations that are kept by noise level."""
    made = attached(card, tmp_path)
    first, second = played(made, card, {0: SNOW})[0], played(made, card, {0: RAIN})[0]
    fresh = played(attached(card, tmp_path), card, {0: RAIN})[0]
    assert (fresh[0], fresh[1].tolist()) == (second[0], second[1].tolist()) and first[0] != second[0]
    made.adapters.detach("rain")
    with pytest.raises(UnknownAdapter, match="adapter rain is not attached"):
        played(made, card, {0: RAIN})


@cards
def test_every_linear_layer_of_a_block_takes_them(card: str, tmp_path: Path) -> None:
    """Each by itself changes what a step comes to or keeps: none is read and left aside."""
    made, _ = built(card, invariant=False)
    whole = lora_file.read_file(peft_file(tmp_path / "a.safetensors", 3, 4, card), layers(card))
    plain = played(made, card, {0: ()})[0]
    for number, (layer, pair) in enumerate(whole.pairs.items()):
        made.adapters.attach(f"{number}", lora_file.LowRank({layer: pair}))
        written, x = played(made, card, {0: (AdapterShare(f"{number}", 1.0),)})[0]
        assert written != plain[0] or not torch.equal(x, plain[1]), layer
