"""The drive's loop and runtime against the straight-line golden, bit by bit, on random weights and on any slot."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.conditions import Conditions
from worldroom.models.contract.loop import Ask, Commit, Done, Outcome, StepKind
from worldroom.models.drive import card, golden
from worldroom.models.drive.loop import DriveCarry, DriveLoop, DriveState
from worldroom.models.drive.runtime import SHAPE as NETWORK
from worldroom.models.drive.runtime import DriveRuntime
from worldroom.models.drive.transformer import DriveTransformer
from worldroom.models.shared import serial
from worldroom.models.shared.road.autoencoder import DriveAutoencoder
from worldroom.models.shared.road.initial_latents import Openings, shape_of
from worldroom.models.shared.road.look import ONE_HOT

pytestmark = pytest.mark.usefixtures("one_thread")
OPENINGS = Openings(
    np.random.default_rng(3).standard_normal(shape_of(NETWORK.tokens, NETWORK.channels)).astype(np.float32)
)
RING = card.WINDOW + 1


def networks() -> tuple[DriveTransformer, DriveAutoencoder]:
    """Random weights without the zeros that training starts from, so that every part matters."""
    torch.manual_seed(11)
    transformer, autoencoder = DriveTransformer(NETWORK), DriveAutoencoder()
    with torch.no_grad():
        for parameter in transformer.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.03)
    return transformer.eval().requires_grad_(False), autoencoder.eval().requires_grad_(False)


NETWORKS = networks()


def runtime(slots: int) -> DriveRuntime:
    made = DriveRuntime(*NETWORKS, lambda text: ONE_HOT[len(text)])
    made.allocate(slots)
    return made


@dataclass
class OneSlot:
    """The smallest engine: one session on one slot of a runtime that others may use as well."""

    runtime: DriveRuntime
    slot: int
    seed: int
    steps: int
    loop: DriveLoop = field(default_factory=lambda: DriveLoop(OPENINGS))
    ring: list[int] = field(default_factory=lambda: list(range(RING)))
    held: list[int] = field(default_factory=list)
    committed: int = 0
    carry: DriveCarry | None = None
    frames: int = 0

    def steps_of(
        self, controls_K: NDArray[np.float32], look_L: NDArray[np.float32], cancel_after: int | None = None
    ) -> Iterator[Outcome[DriveCarry] | None]:
        """One chunk, a step at a time; yields None between steps and the outcome at the end."""
        conditions = Conditions(0, tuple(map(float, controls_K)), (0.0, 0.0), (), 0, 0)
        features = ((look_L, 1.0),)
        ask = Ask(self.seed, 0, self.frames, self.steps, conditions, features, self.carry, self.committed)
        state, done = self.loop.init(ask), 0
        while not isinstance(plan := self.loop.next(state), Done):
            if done == cancel_after:
                return
            view = CacheView(self.slot, tuple(self.held), staged := next(e for e in self.ring if e not in self.held))
            (result,) = self.runtime.execute(plan.kind, [plan.row], [view])
            if plan.commit is Commit.PREVIOUS:
                self.held, self.committed = [*self.held, staged][-card.WINDOW :], self.committed + 1
            state = serial.loads(serial.dumps(self.loop.advance(state, result)), DriveState)
            done += 1
            yield None
        outcome = self.loop.finalize(state)
        self.carry, self.frames = serial.loads(serial.dumps(outcome.carry), DriveCarry), self.frames + 1
        yield outcome

    def chunk(
        self, controls_K: NDArray[np.float32], look_L: NDArray[np.float32], cancel_after: int | None = None
    ) -> Outcome[DriveCarry] | None:
        return [None, *self.steps_of(controls_K, look_L, cancel_after)][-1]


def drives(frames: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Random keys, and a look that changes with a short cross-fade."""
    dice = np.random.default_rng(seed)
    controls = (dice.random((frames, 4)) < 0.4).astype(np.float32)
    share = np.clip((np.arange(frames) - frames // 2) / 4, 0, 1)[:, None].astype(np.float32)
    return controls, np.asarray(ONE_HOT[seed] * (1 - share) + ONE_HOT[(seed * 7 + 20) % 60] * share, np.float32)


@pytest.mark.parametrize(("steps", "frames"), [(1, 14), (2, 15), (4, 5)])
def test_loop_equals_golden_bit_by_bit(steps: int, frames: int) -> None:
    controls, looks = drives(frames, seed=5)
    opening = OPENINGS.pick(looks[0], seed=4)
    expected = golden.rollout(*NETWORKS, opening, 4, 0, steps, controls, looks)
    played = OneSlot(runtime(1), slot=0, seed=4, steps=steps)
    for frame, want in enumerate(expected):
        outcome = played.chunk(controls[frame], looks[frame])
        assert outcome is not None and outcome.digest == want.digest, f"frame {frame}"
        assert np.array_equal(outcome.frames, want.frame_HWC[None])


def test_a_commit_of_its_own_gives_the_same_bits_as_the_fused_one() -> None:
    controls, looks = drives(14, seed=6)
    opening = OPENINGS.pick(looks[0], seed=4)
    fused, apart = (golden.rollout(*NETWORKS, opening, 4, 0, 2, controls, looks, fused=way) for way in (True, False))
    assert [frame.digest for frame in fused] == [frame.digest for frame in apart]


def test_interleaved_sessions_equal_solo_ones_at_any_slot_and_ring_place() -> None:
    steering = {seed: drives(14, seed) for seed in (1, 2, 3)}
    solo = {}
    for seed, (controls, looks) in steering.items():
        alone = OneSlot(runtime(1), slot=0, seed=seed, steps=2)
        solo[seed] = [alone.chunk(c, look) for c, look in zip(controls, looks, strict=True)]

    services, dice = runtime(3), random.Random(0)
    together = {
        seed: OneSlot(services, slot=3 - seed, seed=seed, steps=2, ring=dice.sample(range(RING), RING))
        for seed in steering
    }
    running = {seed: iter(()) for seed in steering}
    made: dict[int, list[Outcome[DriveCarry]]] = {seed: [] for seed in steering}
    while any(len(frames) < 14 for frames in made.values()):
        seed = dice.choice([s for s, frames in made.items() if len(frames) < 14])
        session, (controls, looks) = together[seed], steering[seed]
        outcome = next(running[seed], "start")
        if outcome == "start":
            running[seed] = session.steps_of(controls[session.frames], looks[session.frames])  # type: ignore[assignment]
        elif outcome is not None:
            made[seed].append(outcome)
    for seed, frames in made.items():
        assert [frame.digest for frame in frames] == [frame.digest for frame in solo[seed] if frame is not None]


def test_a_batch_equals_its_rows_alone() -> None:
    batched, apart = runtime(4), runtime(4)
    for kind in (StepKind.COMMIT_DENOISE, StepKind.DENOISE, StepKind.DECODE):
        rows = batched.warm_up_rows(kind, 4)
        together = batched.execute(kind, [row for row, _ in rows], [view for _, view in rows])
        alone = [apart.execute(kind, [row], [view])[0] for row, view in rows]
        assert [serial.dumps(result) for result in together] == [serial.dumps(result) for result in alone]


def test_a_cancelled_chunk_keeps_the_commit_of_the_one_before_and_nothing_else() -> None:
    controls, looks = drives(15, seed=8)
    straight, cut = (OneSlot(runtime(1), slot=0, seed=9, steps=2) for _ in range(2))
    for frame, (c, look) in enumerate(zip(controls, looks, strict=True)):
        cut.chunk(1 - c, look[::-1], cancel_after=frame % 3)
        a, b = straight.chunk(c, look), cut.chunk(c, look)
        assert a is not None and b is not None
        assert a.digest == b.digest, f"frame {frame}"
        assert (a.carry.frames, straight.committed) == (b.carry.frames, cut.committed)


@pytest.mark.parametrize("wrong", ["forget the commit", "another slot", "swap the order"])
def test_a_wrong_cache_is_seen(wrong: str) -> None:
    controls, looks = drives(5, seed=2)
    right, broken = (OneSlot(runtime(2), slot=0, seed=9, steps=2) for _ in range(2))
    for frame in range(4):
        right.chunk(controls[frame], looks[frame])
        broken.chunk(controls[frame], looks[frame])
    match wrong:
        case "forget the commit":
            broken.held.pop()
        case "another slot":
            broken.slot = 1
        case _:
            broken.held.reverse()
    a, b = right.chunk(controls[4], looks[4]), broken.chunk(controls[4], looks[4])
    assert a is not None and b is not None and a.digest != b.digest


def test_impossible_asks_are_refused_with_their_numbers() -> None:
    conditions = Conditions(0, (0.0, 0.0, 0.0, 0.0), (0.0, 0.0), (), 0, 0)
    played = OneSlot(runtime(1), slot=0, seed=1, steps=2)
    outcome = played.chunk(np.zeros(4, np.float32), ONE_HOT[0])
    assert outcome is not None
    loop = DriveLoop(OPENINGS)
    with pytest.raises(ValueError, match="chunk 7: 1 frames made, 3 of them committed"):
        loop.init(Ask(1, 0, 7, 2, conditions, ((ONE_HOT[0], 1.0),), outcome.carry, 3))
    with pytest.raises(ValueError, match=r"weights of 1 prompts sum to 0\.5"):
        loop.init(Ask(1, 0, 7, 2, conditions, ((ONE_HOT[0], 0.5),), None, 0))
    with pytest.raises(ValueError, match="not decoded yet"):
        loop.finalize(loop.init(Ask(1, 0, 7, 2, conditions, ((ONE_HOT[0], 1.0),), None, 0)))


def test_numbers_that_are_not_finite_are_handed_on_and_never_reach_the_slab() -> None:
    played = OneSlot(runtime(1), slot=0, seed=1, steps=2)
    ((row, view),) = played.runtime.warm_up_rows(StepKind.COMMIT_DENOISE, 1)
    row.history_3NC[:] = np.nan  # type: ignore[union-attr]
    (bad,) = played.runtime.execute(StepKind.COMMIT_DENOISE, [row], [view])
    assert np.isnan(bad.x0_NC).any()  # type: ignore[union-attr]
    ((row, view),) = played.runtime.warm_up_rows(StepKind.DENOISE, 1)
    (good,) = played.runtime.execute(StepKind.DENOISE, [row], [view])
    assert np.isfinite(good.x0_NC).all()  # type: ignore[union-attr]


def test_card_names_the_sizes_of_its_networks() -> None:
    transformer, autoencoder = NETWORKS
    made = card.drive_card()
    counts = {component.name: component.parameters for component in made.components}
    assert counts["transformer"] == sum(p.numel() for p in transformer.parameters())
    assert counts["autoencoder"] == sum(p.numel() for p in autoencoder.parameters())
    shape = NETWORK
    one_entry = 2 * shape.temporal * shape.tokens * shape.heads * shape.head_width * 4
    assert made.cache is not None and made.cache.bytes_per_entry == one_entry and made.cache.ring == shape.entries
