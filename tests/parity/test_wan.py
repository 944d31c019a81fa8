"""The Wan family against diffusers and against whole-sequence masked forwards, on tiny drawn networks."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from worldroom.models.parity.ladder import Pair, ParityCheck, ParityLevel, judge
from worldroom.models.wan.card import SPECS, wan_card
from worldroom.models.wan.parity.checks import checks
from worldroom.models.wan.parity.rollout import clip, context_rollout, rollout, twin
from worldroom.models.wan.rows import Policy
from worldroom.models.wan.spec import Positions, WanSpec

torch.set_num_threads(1)
TWO_STEPS = (1.0, 0.8333333333333334)


def small(name: str, **plan: object) -> WanSpec:
    made = twin(SPECS[name])
    return replace(made, plan=replace(made.rollout, sigmas=TWO_STEPS, recache=False, **plan))  # type: ignore[arg-type]


def passes(pairs: Iterator[Pair], tolerance: float) -> None:
    verdict = judge("twin", ParityCheck(ParityLevel.C1, "", tolerance, lambda: pairs))
    assert verdict.ok, verdict


@pytest.mark.parametrize("number", range(4))
def test_components_equal_the_reference(number: int) -> None:
    spec = SPECS["wan-tiny-random"]
    check = [t for t in checks(spec, wan_card(spec)) if t.level is ParityLevel.C0][number]
    verdict = judge(spec.name, check)
    if verdict.figure is None:
        pytest.skip(verdict.why)
    assert verdict.ok, verdict


@pytest.mark.parametrize(
    ("name", "chunks", "switch", "positions"),
    [
        ("longlive-1.3b", 12, "recache", Positions.ABSOLUTE),
        ("longlive-1.3b", 12, "cut", Positions.WINDOW),
        ("longlive-1.3b", 7, "recache", Positions.WINDOW),
        ("longlive-1.3b", 9, "blend", Positions.ABSOLUTE),
    ],
)
def test_a_cached_rollout_equals_masked_forwards_over_whole_sequences(
    name: str, chunks: int, switch: str, positions: Positions
) -> None:
    """12 chunks are three windows of four; sink entries must not move a bit."""
    passes(rollout(small(name, positions=positions), chunks, switch), 1e-4)


def test_a_rolling_window_without_sink_equals_masked_forwards() -> None:
    passes(rollout(small("self-forcing-1.3b", window=9), 9, "cut"), 1e-4)


def test_a_context_rebuilt_before_each_chunk_equals_its_golden() -> None:
    passes(context_rollout(twin(SPECS["krea-realtime-14b"])), 1e-4)


@pytest.mark.parametrize("policy", list(Policy))
def test_guidance_policies_over_one_body(policy: Policy) -> None:
    passes(clip(twin(SPECS["wan-t2v-1.3b"]), policy), 1e-4)


def test_the_golden_notices_a_window_that_is_one_chunk_too_short() -> None:
    right, wrong = small("self-forcing-1.3b", window=9), small("self-forcing-1.3b", window=6)
    ours, shorter = rollout(right, 6, "cut"), rollout(wrong, 6, "cut")
    pairs = (Pair(a.step, a.block, a.name, a.ours, b.reference) for a, b in zip(ours, shorter, strict=True))
    verdict = judge("mutant", ParityCheck(ParityLevel.C1, "", 1e-4, lambda: pairs))
    assert not verdict.ok and verdict.diverged is not None and verdict.diverged.step == 2
