"""Interceptors: who may use one, what becomes of a step that is answered, and where what it knows of a row lives."""

from dataclasses import dataclass, replace
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from worldroom.models import catalog
from worldroom.models.contract.card import Parity
from worldroom.models.contract.intercept import Carried, CommitAnswered, ExactMode, Intercept, intercept
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import Committed, StepKind, WorkPlan
from worldroom.models.contract.recipe import Precision, RecipeMismatch, RuntimeChoice
from worldroom.models.drive.skip import SkipCarry, SkipLastPass
from worldroom.models.parity.session import ChunkInput, ParitySession
from worldroom.models.shared import serial
from worldroom.models.toy.loop import Denoised, DenoiseRow, ToyCarry, ToyResult, ToyRow, ToyState
from worldroom.tests.drive_card import drive
from worldroom.tests.fake_engine import toy


class Count(msgspec.Struct, frozen=True):
    answered: int
    ran: int


class ToyCountCarry(Carried[ToyCarry, Count], frozen=True):
    pass


@dataclass(frozen=True)
class Echo:
    """Answers every step of one kind: a denoise pass with what it was given."""

    kind: StepKind = StepKind.DENOISE
    name: ClassVar[str] = "echo"
    carried: ClassVar[type[Carried[ToyCarry, Count]]] = ToyCountCarry

    def start(self) -> Count:
        return Count(0, 0)

    def decide(self, own: Count, state: ToyState, plan: WorkPlan[ToyRow]) -> WorkPlan[ToyRow] | Intercept[ToyResult]:
        if plan.kind is not self.kind:
            return plan
        return Intercept(Denoised(plan.row.x_C) if isinstance(plan.row, DenoiseRow) else Committed())

    def note(self, own: Count, state: ToyState, result: ToyResult, answered: bool) -> Count:
        return Count(own.answered + answered, own.ran + (not answered))


def inexact(loaded: LoadedCard) -> LoadedCard:
    return replace(loaded, card=replace(loaded.card, parity=Parity(False, 0.5)))


def play(loaded: LoadedCard, chunks: int, session: ParitySession | None = None) -> tuple[ParitySession, list[str]]:
    """`chunks` more chunks on slot 0, and the kinds of step that ran for them."""
    inputs = [ChunkInput((0.0, 1.0, 0.0, 0.0), (0.0, 0.0), "snow")] * 20
    session = session or ParitySession(loaded, 0, 3, inputs, loaded.runtime.encode_prompt)
    kinds: list[str] = []
    for _ in range(chunks):
        session.begin()
        while (plan := session.plan) is not None:
            kinds.append(plan.kind)
            (result,) = loaded.runtime.execute(plan.kind, [plan.row], [session.view()])
            session.advance(result)
    return session, kinds


def test_exact_mode_refuses_an_interceptor() -> None:
    with pytest.raises(ExactMode, match="'echo' changes results: card 'toy' runs in exact mode"):
        intercept(toy(), Echo())
    with pytest.raises(RecipeMismatch, match="recipe 'toy-1' does not allow mode 'inexact': it allows exact"):
        catalog.load("toy", RuntimeChoice("integer", 2, Precision.INT, exact=False))


def test_answered_steps_never_reach_the_device_and_are_counted_in_the_carry() -> None:
    loaded = intercept(inexact(toy()), Echo())
    loaded.runtime.allocate(1)
    session, kinds = play(loaded, 3)
    assert kinds == [StepKind.COMMIT, StepKind.DECODE] * 3
    assert session.carry.own == Count(answered=6, ran=6)


def test_an_interceptor_that_keeps_its_hands_off_changes_no_bit() -> None:
    loaded = inexact(toy())
    loaded.runtime.allocate(1)
    plain, _ = play(loaded, 4)
    wrapped, _ = play(intercept(loaded, Echo(StepKind.ENCODE)), 4)
    assert [outcome.digest for outcome in wrapped.outcomes] == [outcome.digest for outcome in plain.outcomes]


def test_a_step_that_commits_cannot_be_answered() -> None:
    loaded = intercept(inexact(toy()), Echo(StepKind.COMMIT))
    loaded.runtime.allocate(1)
    with pytest.raises(CommitAnswered, match="echo answered a commit step that commits chunk"):
        play(loaded, 1)


def test_the_drive_skips_its_last_pass_while_the_residual_is_small_and_measures_again() -> None:
    exact = drive()
    with pytest.raises(ExactMode, match="'skip of the last pass' changes results: card 'drive'"):
        intercept(exact, SkipLastPass(0.1))
    exact.runtime.allocate(1)
    _, kinds = play(exact, 9)
    assert [kinds.count(kind) for kind in (StepKind.DENOISE, StepKind.COMMIT_DENOISE)] == [10, 8]

    always = intercept(inexact(exact), SkipLastPass(below=1e9, most=3))
    session, kinds = play(always, 9)
    passes = [kinds.count(kind) for kind in (StepKind.DENOISE, StepKind.COMMIT_DENOISE)]
    assert passes == [1 + 3, 8], "the first frame's own start, then every fourth frame has its second pass"
    assert session.carry.own.skipped == 0 and session.carry.own.residual > 0

    never = intercept(inexact(exact), SkipLastPass(below=0.0))
    skipless, _ = play(never, 9)
    plain, _ = play(exact, 9)
    assert [outcome.digest for outcome in skipless.outcomes] == [outcome.digest for outcome in plain.outcomes]


def test_what_the_interceptor_knows_is_saved_with_the_world() -> None:
    skipping = intercept(inexact(drive()), SkipLastPass(below=1e9, most=3))
    assert skipping.carry is SkipCarry
    skipping.runtime.allocate(1)
    session, _ = play(skipping, 2)
    assert session.carry.own.skipped == 1
    session.carry = serial.loads(serial.dumps(session.carry), SkipCarry)
    play(skipping, 3, session)
    straight, _ = play(skipping, 5)
    assert [outcome.digest for outcome in session.outcomes] == [outcome.digest for outcome in straight.outcomes]
    assert np.isfinite(session.carry.own.residual)
