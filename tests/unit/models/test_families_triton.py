"""Worlds of Matrix-Game and Waypoint as a GPU makes them: their kernels, interpreted, against the CPU's references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from worldroom.kernels import chunk_attention, noise, norm_modulate, qk_norm_rope, sampler_step
from worldroom.kernels.backend import INTERPRETED, Backend, Choice
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.matrix_game import parity as matrix_game_parity
from worldroom.models.matrix_game.loop import MatrixGameState
from worldroom.models.matrix_game.spec import tiny
from worldroom.models.parity.session import ChunkInput, ParitySession
from worldroom.models.waypoint import load as waypoint_load
from worldroom.models.waypoint import spec as waypoint
from worldroom.models.waypoint.card import waypoint_card
from worldroom.models.waypoint.loop import WaypointState

torch.set_num_threads(1)
pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton and its interpreter")
KERNELS = (chunk_attention, noise, norm_modulate, qk_norm_rope, sampler_step)


def matrix() -> LoadedCard:
    """Heads of 16; a latent frame has 4 tokens and sees its chunk and the last frame of the one before."""
    small = replace(tiny(), rows=4, columns=4, layers=2, action_layers=1, action_width=32, local=4)
    return matrix_game_parity.loaded(small)


def way() -> LoadedCard:
    """4 heads of 16 over 2 of keys; layers 0 and 2 are local, 1 and 3 see every second frame."""
    spec = replace(waypoint.tiny(), width=64, rows=2, columns=2, global_every=2)
    card = waypoint_card(spec)
    return waypoint_load.load(spec, card, card.recipe.default, None)


def clean(state: MatrixGameState | WaypointState) -> Tensor:
    x = state.x_CFHW if isinstance(state, MatrixGameState) else state.x_TC
    assert x is not None
    return x


def latents_and_entry(make: Callable[[], LoadedCard], chunks: int) -> tuple[list[Tensor], bytes]:
    """Clean latents of every chunk, and what the last one left in its entry."""
    loaded = make()
    loaded.runtime.allocate(1)
    pressed = tuple(1.0 if at == 0 else 0.0 for at in range(len(loaded.card.controls)))
    given = [ChunkInput(pressed, (0.1, -0.2), "a meadow")] * chunks
    session = ParitySession(loaded, 0, 7, given, loaded.runtime.encode_prompt)
    latents = [clean(session.state) for _ in session.run()]
    return latents, loaded.runtime.read_entry(0, session.committed[-1])


@pytest.mark.parametrize(("make", "chunks"), [(matrix, 2), (way, 3)])
def test_a_world_on_the_kernels_is_the_world_of_the_references(
    make: Callable[[], LoadedCard], chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    latents, entry = latents_and_entry(make, chunks)
    asked: set[str] = set()

    def chooses(name: str) -> Callable[[object], Choice]:
        def choose(_: object) -> Choice:
            asked.add(name)
            return Choice(Backend.TRITON, "as on a GPU")

        return choose

    for module in KERNELS:
        name = module.__name__.rpartition(".")[2]
        monkeypatch.setattr(module, "choose", chooses(name))
    made, kept = latents_and_entry(make, chunks)
    assert asked == {"chunk_attention", "noise", "norm_modulate", "qk_norm_rope", "sampler_step"}
    for ours, reference in zip(made, latents, strict=True):
        torch.testing.assert_close(ours, reference, atol=2e-5, rtol=2e-5)
    values, expected = (torch.frombuffer(bytearray(data), dtype=torch.float32) for data in (kept, entry))
    torch.testing.assert_close(values, expected, atol=2e-5, rtol=2e-5)
