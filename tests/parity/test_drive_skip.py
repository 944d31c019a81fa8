"""The drive's inexact mode on the shipped weights: what a skipped last pass changes stays within the recipe."""

import random

import numpy as np
import torch
from worldroom.models import catalog
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.recipe import RuntimeChoice
from worldroom.models.drive.card import RECIPE
from worldroom.models.drive.loop import DecodeRow, Denoised
from worldroom.models.parity.interleave import made_up_inputs
from worldroom.models.parity.session import Session

FRAMES = 24
TWO_PASSES = RuntimeChoice(RECIPE.sampler, 2, RECIPE.default.precision)


def test_a_frame_without_its_last_pass_is_within_the_declared_tolerance() -> None:
    """Each frame from the same state, so that errors do not add up."""
    torch.set_num_threads(1)
    drive = catalog.load("drive", TWO_PASSES)
    drive.runtime.allocate(1)
    inputs = made_up_inputs(drive, FRAMES, random.Random(2))
    session = Session(drive, 0, 5, inputs, drive.runtime.encode_prompt)
    errors = []
    while not session.finished:
        session.begin()
        passes = []
        while (plan := session.plan) is not None:
            (result,) = drive.runtime.execute(plan.kind, [plan.row], [session.view()])
            if isinstance(result, Denoised):
                passes.append(result.x0_NC)
            session.advance(result)
        first, _ = passes
        (early,) = drive.runtime.execute(StepKind.DECODE, [DecodeRow(first)], [None])
        error_HWC = np.abs(early.frame_HWC.astype(np.int16) - session.outcomes[-1].frames_FHWC[0])
        errors.append(error_HWC.max() / 255)
    assert len(errors) == FRAMES
    assert 0 < max(errors) <= RECIPE.inexact


def test_the_inexact_mode_skips_passes_and_makes_the_same_frames_again() -> None:
    torch.set_num_threads(1)
    drive = catalog.load("drive", RuntimeChoice(RECIPE.sampler, 2, RECIPE.default.precision, exact=False))
    assert not drive.card.parity.exact and drive.card.parity.tolerance == RECIPE.inexact
    drive.runtime.allocate(2)
    inputs = made_up_inputs(drive, 8, random.Random(2))
    runs = [[*Session(drive, slot, 5, inputs, drive.runtime.encode_prompt).run()] for slot in (0, 1)]
    assert [outcome.digest for outcome in runs[0]] == [outcome.digest for outcome in runs[1]]
    assert runs[0][-1].carry.own.residual > 0
