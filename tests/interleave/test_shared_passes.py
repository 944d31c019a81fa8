"""Families whose rows share passes in the invariant form: worlds made in step are, bit for bit, what each is alone."""

import pytest
import torch
from worldroom.kernels.invariant_matmul import invariant_linear
from worldroom.models import catalog
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.parity.session import ChunkInput, ParitySession
from worldroom.models.shared import invariant

CARDS = {"matrix-game-tiny-random": 2, "waypoint-tiny-random": 3, "anyflow-tiny-random": 4}
"""Chunks of each world."""
PEOPLE = 3


def load(card: str) -> LoadedCard:
    if card.startswith("anyflow"):
        pytest.importorskip("diffusers")
    loaded = catalog.load(card, catalog.card(card).recipe.default.in_mode("invariant"))
    loaded.runtime.allocate(PEOPLE)
    return loaded


def worlds(loaded: LoadedCard, chunks: int) -> list[ParitySession]:
    """Of seeds, keys and words of their own."""

    def given(person: int, chunk: int) -> ChunkInput:
        keys = tuple(float((chunk + person) >> (bit % 3) & 1) for bit in range(len(loaded.card.controls)))
        words = loaded.card.suggestions[person % len(loaded.card.suggestions)]
        return ChunkInput(keys, (0.0, 0.0), words)

    return [
        ParitySession(loaded, n, n, [given(n, chunk) for chunk in range(chunks)], loaded.runtime.encode_prompt)
        for n in range(PEOPLE)
    ]


def play_in_step(loaded: LoadedCard, sessions: list[ParitySession]) -> None:
    """The step of all of them as one batch, until everybody has all chunks."""
    while not all(session.finished for session in sessions):
        for session in sessions:
            if session.plan is None:
                session.begin()
        plans = [session.plan for session in sessions if session.plan is not None]
        assert len({(plan.kind, plan.shape) for plan in plans}) == 1, "they are in step"
        views = [session.view() for session in sessions]
        results = loaded.runtime.execute(plans[0].kind, [plan.row for plan in plans], views)
        for session, result in zip(sessions, results, strict=True):
            session.advance(result)


def digests(session: ParitySession) -> list[str]:
    return [outcome.digest for outcome in session.outcomes]


@pytest.mark.parametrize(("card", "chunks"), CARDS.items())
def test_worlds_that_share_passes_make_what_each_makes_alone(card: str, chunks: int) -> None:
    loaded = load(card)
    together = worlds(loaded, chunks)
    play_in_step(loaded, together)
    for n, session in enumerate(together):
        assert digests(session) == [outcome.digest for outcome in session.alone((n + 1) % PEOPLE).run()]
    assert len({digests(session)[-1] for session in together}) == PEOPLE


@pytest.mark.parametrize("card", CARDS)
def test_a_product_that_feels_its_batch_would_be_noticed(card: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def feels(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, tile: int) -> torch.Tensor:
        return invariant_linear(x, weight, bias, tile) * (1 + 1e-4 * len(x))

    monkeypatch.setattr(invariant, "invariant_linear", feels)
    loaded = load(card)
    together = worlds(loaded, 1)
    play_in_step(loaded, together)
    assert digests(together[0]) != [outcome.digest for outcome in together[0].alone(1).run()]
