"""Accounts are arithmetic: they equal the modules, agree with the published figures, and the page is what they say."""

import pytest
import torch
from worldroom.models import capacity, catalog
from worldroom.models.anyflow import footprint as anyflow_account
from worldroom.models.anyflow.spec import SPECS as ANYFLOW
from worldroom.models.capacity import holding
from worldroom.models.contract.footprint import Footprint
from worldroom.models.devices import H100
from worldroom.models.matrix_game import footprint as matrix_account
from worldroom.models.matrix_game.spec import SPECS as MATRIX
from worldroom.models.matrix_game.transformer import MatrixGameTransformer
from worldroom.models.shared.video import vae_footprint
from worldroom.models.shared.video.vae import WanVae
from worldroom.tests.paths import ROOT


def parameters(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def account(name: str) -> Footprint:
    family, card = catalog.family(name)
    made = family.account(card)
    assert made is not None
    return made


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "CAPACITY.md").read_text() == capacity.markdown()


@pytest.mark.parametrize("name", MATRIX)
def test_matrix_game_counts_equal_its_modules(name: str) -> None:
    with torch.device("meta"):
        assert matrix_account.transformer_parameters(MATRIX[name]) == parameters(MatrixGameTransformer(MATRIX[name]))
        assert vae_footprint.vae_parameters(MATRIX[name].vae) == parameters(WanVae(MATRIX[name].vae))


@pytest.mark.parametrize("name", ANYFLOW)
def test_anyflow_counts_equal_diffusers_and_transformers(name: str) -> None:
    pytest.importorskip("diffusers")
    from worldroom.models.anyflow.networks import build

    with torch.device("meta"):
        counted = {part.name: part.parameters for part in anyflow_account.parts(ANYFLOW[name])}
        assert counted == {part: parameters(build(ANYFLOW[name], part)) for part in counted}


def test_published_figures() -> None:
    """Keys and values of 21 latent frames of 1560 tokens: [30 layers, 2, 32760, 12, 128] in bf16."""
    assert account("self-forcing-1.3b").kv_bytes == 30 * 2 * 32760 * 12 * 128 * 2
    assert MATRIX["matrix-game-2-universal"].tokens == 880
    assert 1.5e9 < account("matrix-game-2-universal").parts[0].parameters < 1.8e9
    assert account("anyflow-far-1.3b").chunk_seconds == 0.75


@pytest.mark.parametrize("name", [card.name for card, _ in capacity.accounts()])
def test_the_card_declares_at_least_what_the_account_says_a_session_keeps(name: str) -> None:
    cache = catalog.card(name).cache
    if cache is not None:
        made = account(name)
        assert cache.ring * cache.bytes_per_entry == made.kv_bytes
        assert cache.bytes_per_session == made.session_bytes


def test_a_gpu_holds_the_lesser_of_memory_and_compute() -> None:
    """90 % of 80 GB, less 4.8 GB of weights and four rows of .5 GB: 27 sessions of 2.4 GB."""
    held = holding(catalog.card("matrix-game-2-universal"), account("matrix-game-2-universal"), H100)
    assert held.sessions == held.by_compute == 2 and held.by_memory == 27
