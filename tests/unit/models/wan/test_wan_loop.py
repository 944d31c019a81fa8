"""The live Wan loop as a transaction: what it asks for, what it writes, and what is left of a cancelled chunk."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from worldroom.models import catalog
from worldroom.models.contract.cache import CacheSpec, CacheView
from worldroom.models.contract.conditions import Conditions, PromptShare
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import CHUNK_ROLLOUT, Ask, Commit, Done, StepKind
from worldroom.models.contract.recipe import Precision, RecipeMismatch, RuntimeChoice
from worldroom.models.parity.session import ChunkInput, ParitySession
from worldroom.models.shared import serial
from worldroom.models.wan import random_weights
from worldroom.models.wan.card import SPECS, wan_card
from worldroom.models.wan.loop import WanLoop, WanState
from worldroom.models.wan.parity.rollout import loaded, twin
from worldroom.models.wan.rows import DenoiseRow, Sharing
from worldroom.models.wan.runtime import WanRuntime

torch.set_num_threads(1)
FOX, STORM = "a fox in snow", "a lighthouse in a storm"


@pytest.fixture(scope="module")
def card() -> LoadedCard:
    return loaded(twin(SPECS["longlive-1.3b"]))


def world(made: LoadedCard, prompts: list[str], seed: int = 3, slot: int = 0) -> ParitySession:
    return ParitySession(
        made, slot, seed, [ChunkInput((), (0.0, 0.0), text) for text in prompts], made.runtime.encode_prompt
    )


def runtime_of(made: LoadedCard) -> WanRuntime:
    assert isinstance(made.runtime, WanRuntime)
    return made.runtime


def kinds_of(session: ParitySession) -> list[list[str]]:
    """Step kinds, chunk by chunk."""
    chunks: list[list[str]] = []
    while not session.finished:
        if session.plan is None:
            session.begin()
            chunks.append([])
        assert session.plan is not None
        chunks[-1].append(str(session.plan.kind))
        (result,) = session.loaded.runtime.execute(session.plan.kind, [session.plan.row], [session.view()])
        session.advance(result)
    return chunks


def test_a_switch_of_the_prompt_rebuilds_the_cache_once_past_the_sink(card: LoadedCard) -> None:
    card.runtime.allocate(1)
    played = ["denoise"] * 4 + ["commit", "decode"]
    session = world(card, [FOX, STORM, STORM, FOX, FOX])
    assert kinds_of(session) == [played, played, played, ["recache", *played], played]
    assert [len(outcome.frames) for outcome in session.outcomes] == [9, 12, 12, 12, 12]


def test_denoise_writes_nothing_and_a_commit_only_its_staged_entry(card: LoadedCard) -> None:
    runtime = runtime_of(card)
    runtime.allocate(2)
    session = world(card, [FOX] * 5 + [STORM], slot=1)
    while not session.finished:
        if session.plan is None:
            session.begin()
        plan, view = session.plan, session.view()
        assert plan is not None and view is not None
        before = runtime.slab.values.clone()
        (result,) = runtime.execute(plan.kind, [plan.row], [view])
        written = {(int(s), int(e)) for s, e in (before != runtime.slab.values).flatten(2).any(2).nonzero()}
        match plan.kind:
            case StepKind.COMMIT:
                assert plan.commit is Commit.CHUNK and written == {(1, view.staged)}
            case StepKind.RECACHE:
                assert plan.rebuilt == 2 and written == {(1, entry) for entry in view.spare}
            case _:
                assert written == set()
        session.advance(result)


@pytest.mark.parametrize("after", [1, 3, 6])
def test_a_cancelled_chunk_leaves_no_trace_even_when_it_had_rebuilt_the_cache(card: LoadedCard, after: int) -> None:
    card.runtime.allocate(2)
    straight, cut = world(card, [FOX] * 5), world(card, [FOX] * 5, slot=1)
    expected = [outcome.digest for outcome in straight.run()]
    while len(cut.outcomes) < 4:
        next(iter(cut.run()))
    cut.inputs = [*cut.inputs[:4], ChunkInput((), (0.0, 0.0), STORM)]
    cut.begin()
    for _ in range(after):
        assert cut.plan is not None
        (result,) = card.runtime.execute(cut.plan.kind, [cut.plan.row], [cut.view()])
        if cut.advance(result) is not None:
            pytest.fail("the chunk is shorter than the test believes")
    cut.plan, cut.inputs = None, [ChunkInput((), (0.0, 0.0), FOX)] * 5
    assert [*(o.digest for o in cut.outcomes), *(o.digest for o in cut.run())] == expected


def test_a_world_goes_on_from_saved_state_at_every_step_bit_for_bit(card: LoadedCard) -> None:
    card.runtime.allocate(2)
    expected = [outcome.digest for outcome in world(card, [FOX, FOX, STORM, STORM]).run()]
    saved = world(card, [FOX, FOX, STORM, STORM], slot=1)
    while not saved.finished:
        if saved.plan is None:
            saved.begin()
        assert saved.plan is not None
        (result,) = card.runtime.execute(saved.plan.kind, [saved.plan.row], [saved.view()])
        saved.advance(result)
        saved.state = serial.loads(serial.dumps(saved.state), WanState)
    assert [outcome.digest for outcome in saved.outcomes] == expected


def test_rows_at_different_noise_levels_and_window_lengths_run_in_one_pass() -> None:
    made = loaded(twin(SPECS["longlive-1.3b"]), Sharing.PLAIN)
    runtime = runtime_of(made)
    runtime.allocate(3)
    worlds = [world(made, [FOX] * 4, seed=slot, slot=slot) for slot in range(3)]
    for session, chunks, steps in zip(worlds, (0, 1, 3), (2, 0, 3), strict=True):
        while len(session.outcomes) < chunks:
            next(iter(session.run()))
        session.begin()
        for _ in range(steps):
            assert session.plan is not None
            session.advance(runtime.execute(session.plan.kind, [session.plan.row], [session.view()])[0])
    calls = []
    hook = runtime.networks.transformer.register_forward_hook(lambda *given: calls.append(1))
    plans, views = [session.plan for session in worlds], [session.view() for session in worlds]
    together = runtime.execute(StepKind.DENOISE, [plan.row for plan in plans if plan is not None], views)
    assert len(calls) == 1
    hook.remove()
    sigmas = [plan.row.sigma for plan in plans if plan is not None and isinstance(plan.row, DenoiseRow)]
    assert sigmas == [0.8333333333333334, 1.0, 0.625]
    for plan, view, result in zip(plans, views, together, strict=True):
        assert plan is not None
        (alone,) = runtime.execute(plan.kind, [plan.row], [view])
        torch.testing.assert_close(result.x_CFHW, alone.x_CFHW, atol=1e-4, rtol=1e-4)  # type: ignore[union-attr]


def ask(made: LoadedCard, opening: np.ndarray | None, steps: int = 4) -> Ask[object]:  # type: ignore[type-arg]
    conditions = Conditions(0, (), (0.0, 0.0), (PromptShare("fox", 1.0),), 1, 0)
    return Ask(1, 0, 0, steps, conditions, ((made.runtime.encode_prompt(FOX), 1.0),), None, 0, opening)


def test_a_world_may_open_with_a_picture(card: LoadedCard) -> None:
    """It is encoded, committed and shown as the first chunk; nothing is denoised."""
    card.runtime.allocate(1)
    frame, kinds = card.card.frame, []
    picture = np.linspace(0, 255, frame.width * frame.height * 3).reshape(1, frame.height, frame.width, 3)
    state = card.loop.init(ask(card, picture.astype(np.uint8)))
    while not isinstance(plan := card.loop.next(state), Done):
        kinds.append(str(plan.kind))
        (result,) = card.runtime.execute(plan.kind, [plan.row], [CacheView(0, (), 0, (1, 2))])
        state = card.loop.advance(state, result)
    outcome = card.loop.finalize(state)
    assert kinds == ["encode", "commit", "decode"]
    assert outcome.frames.shape == (9, frame.height, frame.width, 3)
    vae = runtime_of(card).networks.vae
    expected = vae.encode(torch.from_numpy(picture.astype(np.uint8)).permute(3, 0, 1, 2)[None].float() / 127.5 - 1)
    assert outcome.carry.clean_CFHW.shape == (16, 3, 4, 4)
    torch.testing.assert_close(outcome.carry.clean_CFHW[:, :1], expected[0])


@pytest.mark.parametrize(
    ("shape", "says"),
    [((1, 30, 32, 3), "first frames are uint8"), ((5, 32, 32, 3), "one picture or at least 9 frames, got 5")],
)
def test_an_opening_of_the_wrong_size_is_refused(card: LoadedCard, shape: tuple[int, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        card.loop.init(ask(card, np.zeros(shape, np.uint8)))


def test_four_step_weights_refuse_fifty_steps_and_the_reverse() -> None:
    with pytest.raises(RecipeMismatch, match=r"'self-forcing-1.3b' does not allow steps '50': it allows 4$"):
        catalog.load("self-forcing-1.3b", RuntimeChoice("renoise", 50, Precision.BF16))
    with pytest.raises(RecipeMismatch, match=r"'wan-t2v-1.3b' does not allow steps '4': it allows 50, 40, 30, 20"):
        catalog.load("wan-t2v-1.3b", RuntimeChoice("flow_euler", 4, Precision.BF16))
    with pytest.raises(RecipeMismatch, match="does not allow sampler 'flow_euler': it allows renoise"):
        catalog.load("longlive-1.3b", RuntimeChoice("flow_euler", 4, Precision.BF16))
    made = loaded(twin(SPECS["krea-realtime-14b"]))
    with pytest.raises(RecipeMismatch, match="does not allow steps '50'"):
        made.loop.init(ask(made, None, steps=50))


def test_noise_levels_are_those_of_the_published_step_lists() -> None:
    assert wan_card(SPECS["self-forcing-1.3b"]).recipe.sigmas == ((1.0, 0.9375, 0.8333333333333334, 0.625),)
    assert wan_card(SPECS["krea-realtime-14b"]).recipe.sigmas == ((1.0, 0.937, 0.833, 0.625),)
    fifty = wan_card(SPECS["wan-t2v-1.3b"]).recipe.levels(50)
    assert fifty[0] == 1.0 and fifty[25] == pytest.approx(3 * 0.5005 / 2.001) and all(a > b for a, b in pairwise(fifty))


def test_a_sink_never_falls_out_and_rebuilt_entries_take_the_place_of_the_rest() -> None:
    cache = CacheSpec(ring=6, bytes_per_entry=1, sink=1, rebuild=2)
    assert cache.window == 3
    assert cache.kept((), (), (0,)) == (0,)
    assert cache.kept((0, 1, 2), (), (3,)) == (0, 2, 3)
    assert cache.kept((0, 2, 3), (4, 5), (1,)) == (0, 5, 1)
    assert cache.kept((0, 2, 3), (), ()) == (0, 2, 3)
    with pytest.raises(ValueError, match="sink 4 <= window"):
        CacheSpec(ring=4, bytes_per_entry=1, sink=4)


def test_bf16_stays_near_fp32() -> None:
    spec = replace(twin(SPECS["self-forcing-1.3b"]), vae=replace(SPECS["wan-tiny-random"].vae, width=4))
    clean = []
    for dtype in (torch.float32, torch.bfloat16):
        card = wan_card(spec)
        runtime = WanRuntime(spec, random_weights.networks(spec, dtype), dtype, Sharing.ALONE)
        runtime.allocate(1)
        made = LoadedCard(card, card.recipe.default, "random", {CHUNK_ROLLOUT: WanLoop(spec, card.recipe)}, runtime)
        session = world(made, [FOX])
        next(iter(session.run()))
        clean.append(session.state.x_CFHW)
    assert clean[1].dtype == torch.float32
    assert 1e-4 < (clean[0] - clean[1]).abs().mean() < 0.05
