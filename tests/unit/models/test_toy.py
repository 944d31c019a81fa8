"""The toy card against its golden: equal over long random runs, and different as soon as anything is wrong."""

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from worldroom.models import catalog
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.conditions import Conditions, PromptShare
from worldroom.models.contract.loop import Ask, Commit, Done, Outcome, Previews
from worldroom.models.parity.session import ChunkInput, ParitySession
from worldroom.models.shared import serial
from worldroom.models.toy import golden, markers
from worldroom.models.toy.card import WINDOW, ToySpec
from worldroom.models.toy.loop import ToyCarry, ToyLoop, ToyState
from worldroom.models.toy.runtime import ToyRuntime


@dataclass
class OneSlot:
    """The smallest engine: one session, one slot, stage and commit by the book (or not, for mutants)."""

    runtime: ToyRuntime
    loop: ToyLoop
    slot: int = 0
    rolls_back: bool = True
    committed: list[int] = field(default_factory=list)
    carry: ToyCarry | None = None
    chunks: int = 0

    def chunk(
        self, given: golden.GoldenInput, seed: int, steps: int, cancel_after: int | None = None
    ) -> Outcome[ToyCarry] | None:
        shares = tuple(PromptShare(text, weight) for text, weight in given.prompts)
        conditions = Conditions(0, given.controls, (0.0, 0.0), shares, 0, given.input_seq)
        features = tuple((self.runtime.encode_prompt(text), weight) for text, weight in given.prompts)
        ask = Ask(seed, 0, self.chunks, steps, conditions, features, self.carry, len(self.committed))
        staged = next(entry for entry in range(WINDOW + 1) if entry not in self.committed)
        state, writes, done = self.loop.init(ask), False, 0
        while not isinstance(plan := self.loop.next(state), Done):
            if done == cancel_after:
                if writes and not self.rolls_back:
                    self._commit(staged)
                return None
            view = CacheView(self.slot, tuple(self.committed), staged)
            (result,) = self.runtime.execute(plan.kind, [plan.row], [view])
            writes = writes or plan.commit is Commit.CHUNK
            state = serial.loads(serial.dumps(self.loop.advance(state, result)), ToyState)
            done += 1
        outcome = self.loop.finalize(state)
        self._commit(staged)
        self.carry, self.chunks = outcome.carry, self.chunks + 1
        return outcome

    def _commit(self, staged: int) -> None:
        self.committed = [*self.committed, staged][-WINDOW:]


def world(spec: ToySpec | None = None, slots: int = 1) -> OneSlot:
    spec = spec or ToySpec()
    runtime = ToyRuntime(spec, lambda seconds: None)
    runtime.allocate(slots)
    return OneSlot(runtime, ToyLoop(spec))


def random_inputs(count: int, seed: int) -> list[golden.GoldenInput]:
    dice = random.Random(seed)
    texts = ["a calm blue sea", "рассвет", "🚀", ""]
    inputs = []
    for number in range(count):
        first, second = dice.sample(texts, 2)
        share = dice.choice([0.0, 0.25, 0.5, 1.0])
        controls = tuple(dice.choice([0.0, 0.0, 0.5, 1.0]) for _ in range(4))
        inputs.append(golden.GoldenInput(controls, ((first, share), (second, 1.0 - share)), number))
    return inputs


@pytest.mark.parametrize(("steps", "per_chunk"), [(1, 1), (2, 1), (3, 2), (4, 12)])
def test_loop_equals_golden_over_200_chunks_of_random_steering(steps: int, per_chunk: int) -> None:
    spec = ToySpec(fps=24, per_chunk=per_chunk)
    played, inputs = world(spec), random_inputs(200, seed=steps)
    expected = golden.run(7, 0, steps, 24, per_chunk, inputs)
    for given, want in zip(inputs, expected, strict=True):
        outcome = played.chunk(given, seed=7, steps=steps)
        assert outcome is not None
        assert outcome.digest == want.digest
        assert tuple(outcome.carry.last_C.tolist()) == want.latent
        assert outcome.frames.shape == (per_chunk, 96, 160, 3)
        for frame, ship, bits in zip(outcome.frames, want.ships, want.marker_rows, strict=True):
            assert "".join("1" if frame[r * 8 + 4, c * 8 + 4, 0] else "0" for r in range(4) for c in range(20)) == bits
            assert tuple(frame[ship[1], ship[0]]) == (255, 120, 40)


def test_a_cancelled_chunk_leaves_no_trace() -> None:
    straight, cut = world(), world()
    for number, given in enumerate(random_inputs(40, seed=5)):
        cut.chunk(given, seed=3, steps=2, cancel_after=number % 4)
        a, b = straight.chunk(given, seed=3, steps=2), cut.chunk(given, seed=3, steps=2)
        assert a is not None and b is not None and a.digest == b.digest
        assert np.array_equal(a.frames, b.frames)


def test_a_mutant_that_forgets_to_roll_back_is_caught() -> None:
    straight, mutant = world(), world()
    mutant.rolls_back = False
    given = golden.GoldenInput((0, 1, 0, 0), (("sea", 1.0),))
    for runner in (straight, mutant):
        runner.chunk(given, seed=3, steps=2)
        runner.chunk(given, seed=3, steps=2, cancel_after=3)
    a, b = straight.chunk(given, seed=3, steps=2), mutant.chunk(given, seed=3, steps=2)
    assert a is not None and b is not None and a.digest != b.digest


@pytest.mark.parametrize("wrong", ["drop an entry", "swap the order", "another slot", "forget the carry"])
def test_a_wrong_cache_or_history_changes_the_next_chunk(wrong: str) -> None:
    right, broken = world(slots=2), world(slots=2)
    given = golden.GoldenInput((0, 0, 1, 0), (("sea", 1.0),))
    for runner in (right, broken):
        for _ in range(3):
            runner.chunk(given, seed=1, steps=2)
    match wrong:
        case "drop an entry":
            broken.committed.pop(0)
        case "swap the order":
            broken.committed.reverse()
        case "another slot":
            broken.slot = 1
        case _:
            broken.carry = None
    a, b = right.chunk(given, seed=1, steps=2), broken.chunk(given, seed=1, steps=2)
    assert a is not None and b is not None and a.digest != b.digest


@pytest.mark.parametrize(
    "other",
    [
        golden.GoldenInput((1, 0, 0, 0), (("sea", 1.0),)),
        golden.GoldenInput((0, 0, 0, 0), (("sand", 1.0),)),
        golden.GoldenInput((0, 0, 0, 0), (("sea", 0.5), ("sand", 0.5))),
    ],
)
def test_controls_and_prompt_reach_the_latent(other: golden.GoldenInput) -> None:
    plain = world().chunk(golden.GoldenInput((0, 0, 0, 0), (("sea", 1.0),)), seed=1, steps=2)
    changed = world().chunk(other, seed=1, steps=2)
    assert plain is not None and changed is not None and plain.digest != changed.digest


def test_rows_in_one_batch_do_not_see_each_other() -> None:
    runtime = world(slots=4).runtime
    rows = runtime.warm_up_rows(plan_kind := ToyLoop(ToySpec()).next(_fresh_state()).kind, 4)  # type: ignore[union-attr]
    batched = runtime.execute(plan_kind, [row for row, _ in rows], [view for _, view in rows])
    solo = [runtime.execute(plan_kind, [row], [view])[0] for row, view in rows]
    assert [serial.dumps(result) for result in batched] == [serial.dumps(result) for result in solo]


def _fresh_state() -> ToyState:
    conditions = Conditions(0, (0.0, 0.0, 0.0, 0.0), (0.0, 0.0), (), 0, 0)
    return ToyLoop(ToySpec()).init(Ask(1, 0, 0, 2, conditions, (), None, 0))


def test_step_cost_is_slept_once_per_batch_and_never_on_virtual_time() -> None:
    slept: list[float] = []
    for sleeps in (True, False):
        runtime = ToyRuntime(ToySpec(step_seconds=0.03, sleeps=sleeps), slept.append)
        runtime.allocate(2)
        rows = runtime.warm_up_rows(ToyLoop(ToySpec()).next(_fresh_state()).kind, 2)  # type: ignore[union-attr]
        runtime.execute(ToyLoop(ToySpec()).next(_fresh_state()).kind, [r for r, _ in rows], [v for _, v in rows])  # type: ignore[union-attr]
    assert slept == [0.03]


def test_markers_survive_scaling_and_refuse_damage() -> None:
    frame = np.full((96, 160, 3), 77, np.uint8)
    markers.draw(frame, markers.Marker(chunk=300, input_seq=70_000, time_ms=12_500))
    assert markers.read(frame) == (300, 70_000, 12_500)
    big = frame.repeat(4, axis=0).repeat(4, axis=1)
    noisy = np.clip(big.astype(int) + np.random.default_rng(0).integers(-60, 60, big.shape), 0, 255).astype(np.uint8)
    assert markers.read(noisy, scale=4) == (300, 70_000, 12_500)
    frame[0:8, 8:16] = 255
    assert markers.read(frame) is None
    assert markers.read(frame[:20]) is None


def test_spec_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="per_chunk >= 1"):
        ToySpec(per_chunk=0)


def made(card: str, chunks: int) -> list[str]:
    """Digests of a world that nobody steers."""
    loaded = catalog.load(card)
    loaded.runtime.allocate(1)
    still = ChunkInput((0.0,) * len(loaded.card.controls), (0.0, 0.0), "a calm blue sea")
    session = ParitySession(loaded, 0, 7, [still] * chunks, loaded.runtime.encode_prompt)
    return [outcome.digest for outcome in session.run()]


def test_what_the_narrator_wrote_steers_from_its_next_run_on() -> None:
    plain, narrated = made("toy", 6), made("toy-narrated", 6)
    assert plain[:4] == narrated[:4]
    assert plain[4] != narrated[4] and plain[5] != narrated[5]


def test_a_clip_shows_what_it_will_be_before_it_is_done_and_each_of_its_states_can_be_saved() -> None:
    loaded, shown, states = catalog.load("toy-clip"), [], []
    loop, share = loaded.loop, (PromptShare("a red desert", 1.0),)
    feature = loaded.runtime.encode_prompt("a red desert")
    state = loop.init(Ask(3, 0, 0, 50, Conditions(0, (), (0.0, 0.0), share, 1, 0), ((feature, 1.0),), None, 0))
    assert isinstance(loop, Previews) and loaded.state is not None
    while not isinstance(plan := loop.next(state), Done):
        (result,) = loaded.runtime.execute(plan.kind, [plan.row], [None])
        state = serial.loads(serial.dumps(loop.advance(state, result)), loaded.state)
        states.append(state)
        if (preview := loop.preview(state)) is not None:
            shown.append((preview.done, preview.frames.shape))
    assert shown == [(share / 50, (1, 96, 160, 3)) for share in (10, 20, 30, 40)]
    outcome = loop.finalize(state)
    assert outcome.frames.shape == loaded.card.frame.shape(opens=True) and len(states) == 55
