"""One chunk is a transaction: what is committed when it ends well, is cancelled, or breaks, step by step."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from worldroom.engine.caches.slab_pool import SlabPool
from worldroom.engine.cancel import CancelScope, Superseded
from worldroom.engine.drive import BadFrames, drive_chunk
from worldroom.models.contract.cache import CacheSpec, CacheView
from worldroom.models.contract.card import FrameSpec, Pixels
from worldroom.models.contract.conditions import Conditions
from worldroom.models.contract.latents import Latents
from worldroom.models.contract.loop import Ask, Commit, Done, Outcome, StepKind, WorkPlan

FRAME = FrameSpec(width=4, height=2, scale=1, fps=24, per_chunk=1)
FUSED = (
    Commit.PREVIOUS,
    Commit.NONE,
    Commit.NONE,
)  # commit of the chunk before with the first denoise, denoise, decode
PLAIN = (Commit.NONE, Commit.CHUNK, Commit.NONE)  # denoise, commit, decode


@dataclass(frozen=True)
class Script:
    """A loop whose steps only say where their write belongs."""

    commits: tuple[Commit, ...]
    frames: Any = field(default_factory=lambda: np.zeros((1, 2, 4, 3), np.uint8))

    def init(self, ask: Ask[int]) -> int:
        return 0

    def next(self, state: int) -> WorkPlan[int] | Done:
        return Done() if state == len(self.commits) else WorkPlan(StepKind.DENOISE, (), state, self.commits[state])

    def advance(self, state: int, result: int) -> int:
        return state + 1

    def finalize(self, state: int) -> Outcome[int]:
        return Outcome(self.frames, state, Latents.of(np.zeros(1)))


@dataclass
class Scene:
    """Runs scripts on one slot; `at` may act while step n is on the device."""

    pool: SlabPool
    scope: CancelScope

    def __init__(self) -> None:
        self.pool = SlabPool(CacheSpec(ring=5, bytes_per_entry=1), 1)
        self.slot = self.pool.acquire()
        self.scope = CancelScope()
        self.views: list[CacheView | None] = []

    def run(
        self, script: Script, at: Callable[[int], None] = lambda step: None, frame: FrameSpec = FRAME
    ) -> Outcome[int]:
        async def execute(plan: WorkPlan[int], view: CacheView | None) -> int:
            self.views.append(view)
            at(plan.row)
            return plan.row

        conditions = Conditions(0, (), (0.0, 0.0), (), 1, 0)
        ask: Ask[int] = Ask(1, 0, 0, 2, conditions, (), None, self.slot.count)
        return asyncio.run(drive_chunk(script, ask, self.slot, execute, self.scope, frame))

    @property
    def committed(self) -> int:
        self.pool.check_integrity()
        return self.slot.count


def test_a_chunks_own_write_is_committed_when_it_finalizes() -> None:
    scene, seen = Scene(), []
    scene.run(Script(PLAIN), lambda step: seen.append(scene.committed))
    assert (seen, scene.committed) == ([0, 0, 0], 1)


def test_a_fused_write_is_committed_at_its_steps_boundary() -> None:
    scene, seen = Scene(), []
    scene.run(Script(FUSED), lambda step: seen.append(scene.committed))
    assert (seen, scene.committed) == ([0, 1, 1], 1)
    assert [view.committed for view in scene.views if view] == [(), (0,), (0,)]


@pytest.mark.parametrize(
    ("commits", "step", "stays"), [(PLAIN, 0, 0), (PLAIN, 1, 0), (PLAIN, 2, 0), (FUSED, 0, 1), (FUSED, 1, 1)]
)
def test_cancelling_while_a_step_runs_keeps_only_what_belongs_to_the_chunk_before(
    commits: tuple[Commit, ...], step: int, stays: int
) -> None:
    scene = Scene()
    ran = []

    def press(number: int) -> None:
        ran.append(number)
        if number == step:
            scene.scope.cancel()

    with pytest.raises(Superseded):
        scene.run(Script(commits), press)
    assert ran == list(range(step + 1)), "no step starts after the cancellation"
    assert scene.committed == stays
    scene.pool.free(scene.slot)


def test_a_fault_rolls_back_and_the_chunk_can_be_made_again() -> None:
    scene = Scene()

    def fail(step: int) -> None:
        if step == 1:
            raise FloatingPointError("not finite")

    with pytest.raises(FloatingPointError):
        scene.run(Script(PLAIN), fail)
    assert scene.committed == 0
    scene.run(Script(PLAIN))
    assert scene.committed == 1


def test_a_cancelled_scope_above_cancels_everything_below() -> None:
    server = CancelScope()
    session = CancelScope(server)
    chunk, other = CancelScope(session), CancelScope(CancelScope(server))
    session.cancel()
    assert (server.cancelled, session.cancelled, chunk.cancelled, other.cancelled) == (False, True, True, False)
    server.cancel()
    assert other.cancelled


@pytest.mark.parametrize(
    ("pixels", "frames", "message"),
    [
        (Pixels.RGB, np.full((1, 2, 4, 3), np.nan, np.float32), r"frames are float32 \(all finite: False\)"),
        (Pixels.RGB, np.zeros((1, 4, 2, 3), np.uint8), r"\(1, 4, 2, 3\), the card promises \(1, 2, 4, 3\)"),
        (Pixels.RGB, np.zeros((1, 3, 4), np.uint8), r"\(1, 3, 4\), the card promises \(1, 2, 4, 3\)"),
        (Pixels.I420, np.zeros((1, 2, 4, 3), np.uint8), r"\(1, 2, 4, 3\), the card promises \(1, 3, 4\)"),
        (Pixels.I420, np.zeros((2, 3, 4), np.uint8), r"\(2, 3, 4\), the card promises \(1, 3, 4\)"),
    ],
)
def test_frames_the_card_does_not_promise_commit_nothing(pixels: Pixels, frames: Any, message: str) -> None:
    scene = Scene()
    with pytest.raises(BadFrames, match=message):
        scene.run(replace(Script(PLAIN), frames=frames), frame=replace(FRAME, pixels=pixels))
    assert scene.committed == 0


def test_frames_in_planes_have_the_size_that_is_shown() -> None:
    frame = FrameSpec(width=4, height=2, scale=2, fps=24, per_chunk=3, opening=1, pixels=Pixels.I420)
    assert frame.shape(opens=True) == (1, 6, 8)
    assert frame.shape(opens=False) == (3, 6, 8)
    assert replace(frame, pixels=Pixels.RGB).shape(opens=False) == (3, 2, 4, 3)
