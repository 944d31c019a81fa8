"""UniPC against diffusers' scheduler, and the clip loop that runs it."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from worldroom.models import catalog
from worldroom.models.contract.recipe import Precision, RecipeMismatch, RuntimeChoice
from worldroom.models.wan.clips import unipc
from worldroom.models.wan.spec import many_steps


def field(x: Tensor, sigma: float) -> Tensor:
    """A velocity that bends with place and level."""
    return torch.sin(3 * x) * (1 + sigma) - 0.7 * x


def ours(steps: int, shift: float, x: Tensor) -> Tensor:
    levels, solver = (*many_steps(steps, shift), 0.0), unipc.Solver()
    for step in range(steps):
        x, solver = unipc.advance(solver, levels, step, x, field(x, levels[step]))
    return x


def theirs(steps: int, shift: float) -> tuple[np.ndarray, Callable[[Tensor], Tensor]]:
    diffusers = pytest.importorskip("diffusers")
    scheduler = diffusers.UniPCMultistepScheduler(
        prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=shift, num_train_timesteps=1000
    )
    scheduler.set_timesteps(steps)

    def run(x: Tensor) -> Tensor:
        x = x.double()
        for level, timestep in zip(scheduler.sigmas.tolist(), scheduler.timesteps, strict=False):
            x = scheduler.step(field(x, level), timestep, x).prev_sample
        return x

    return scheduler.sigmas.numpy(), run


@pytest.mark.parametrize(("steps", "shift"), [(50, 3.0), (20, 5.0), (4, 3.0), (2, 1.0), (1, 3.0)])
def test_levels_and_every_step_equal_the_schedulers(steps: int, shift: float) -> None:
    sigmas, run = theirs(steps, shift)
    np.testing.assert_allclose((*many_steps(steps, shift), 0.0), sigmas, atol=2e-6)
    x = torch.randn(1, 4, 3, 4, generator=torch.Generator().manual_seed(steps))
    torch.testing.assert_close(ours(steps, shift, x).double(), run(x), atol=3e-5, rtol=3e-5)


def test_timesteps_are_those_the_scheduler_hands_to_the_network() -> None:
    diffusers = pytest.importorskip("diffusers")
    scheduler = diffusers.UniPCMultistepScheduler(
        prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0, num_train_timesteps=1000
    )
    scheduler.set_timesteps(30)
    assert [unipc.timestep(sigma) for sigma in many_steps(30, 3.0)] == scheduler.timesteps.tolist()


def test_undistilled_weights_take_both_samplers_and_four_step_ones_neither() -> None:
    clip, live = catalog.card("wan-t2v-1.3b").recipe, catalog.card("self-forcing-1.3b").recipe
    assert clip.default.sampler == "unipc"
    for sampler in ("unipc", "flow_euler"):
        clip.check(RuntimeChoice(sampler, 50, Precision.BF16))
        with pytest.raises(RecipeMismatch, match="sampler"):
            live.check(RuntimeChoice(sampler, 4, Precision.BF16))
    with pytest.raises(RecipeMismatch, match="sampler 'renoise': it allows unipc, flow_euler"):
        clip.check(RuntimeChoice("renoise", 50, Precision.BF16))
    with pytest.raises(RecipeMismatch, match="steps '4'"):
        clip.check(RuntimeChoice("unipc", 4, Precision.BF16))
