"""The dream recipe in small: every stage runs, resumes and leaves files that the card can load; and its parts."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file
from worldroom.models.dream.card import WEIGHTS
from worldroom.models.dream.runtime import load_networks
from worldroom.models.dream.shape import DreamShape
from worldroom.models.dream.transformer import CONTEXT_SIGMA, PICTURE, CondBF, DreamTransformer
from worldroom.training.dream.dice import DICE, new_luck
from worldroom.training.dream.files import network_of, take_up_shipped
from worldroom.training.dream.recipe import SMALL, Stage, run
from worldroom.training.dream.rollout import Pressed, begin, go_on, sigmas_of
from worldroom.training.dream.stage_teacher import velocity_weight
from worldroom.training.dream.windows import frame_noise
from worldroom.training.drive.figures import ClipFigures, HistoryRow, WorldFigures
from worldroom.training.drive.measures import RoadMotion
from worldroom.training.drive.optimise import load_checkpoint
from worldroom.training.drive.past import ALL, Cut, Known

torch.set_num_threads(1)


def test_all_stages_run_in_small_resume_and_leave_loadable_weights(tmp_path: Path) -> None:
    quiet = Console(file=io.StringIO())
    stages = [stage for stage in Stage if stage is not Stage.QUALITY]
    run(tmp_path, stages, SMALL, 0, quiet)
    assert load_checkpoint(tmp_path / "student.pt").iteration == SMALL.student
    transformer, _ = load_networks(tmp_path / "weights")
    assert transformer.shape == DreamShape()
    before = {path: load_file(path) for path in tmp_path.glob("weights/*.safetensors")}
    run(tmp_path, stages, SMALL, 0, quiet)
    for path, tensors in before.items():
        again = load_file(path)
        assert all(torch.equal(again[name], tensor) for name, tensor in tensors.items()), path.name


def test_training_goes_on_from_what_is_shipped(tmp_path: Path) -> None:
    take_up_shipped(tmp_path)
    shipped, _ = load_networks(WEIGHTS)
    begun = network_of(tmp_path / "paint.pt").state_dict()
    assert all(torch.equal(begun[name], tensor) for name, tensor in shipped.state_dict().items())
    run(tmp_path, (Stage.DATA, Stage.PAINT, Stage.EXPORT), SMALL, 0, Console(file=io.StringIO()))
    assert load_checkpoint(tmp_path / "paint.pt").iteration == SMALL.paint
    exported, _ = load_networks(tmp_path / "weights")
    for part in ("recurrent", "reader"):  # they stay as they are while what paints is trained
        for kept, again in zip(getattr(shipped, part).parameters(), getattr(exported, part).parameters(), strict=True):
            assert torch.equal(kept, again), part


def random_network() -> DreamTransformer:
    torch.manual_seed(3)
    network = DreamTransformer(DreamShape(width=64, heads=2))
    for parameter in network.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.03)
    return network.requires_grad_(False)


def given(frames: int) -> tuple[torch.Tensor, list[Pressed]]:
    g = torch.Generator().manual_seed(1)
    latents = torch.randn(2, frames, PICTURE, 32, generator=g)
    parts = (torch.rand(2, frames, count, generator=g).unbind(1) for count in (4, 12, 8))
    return latents, [Pressed(*pressed) for pressed in zip(*parts, strict=True)]


def whole(network: DreamTransformer, latents: torch.Tensor, pressed: list[Pressed], first: int) -> CondBF:
    """All frames' conditions, with recurrent tokens read off the pictures before `first`, going on from there."""
    states = [torch.zeros(2, network.shape.state)] * 2
    for frame in range(2, len(pressed)):
        made_of = pressed[frame]
        if frame < first:
            states.append(network.read(latents[:, frame - 2 : frame + 1].flip(1), made_of.look_BL))
        else:
            states.append(network.onward(states[-1], made_of.controls_BK, made_of.noise_BZ))
    parts = zip(*((one.controls_BK, one.look_BL, one.noise_BZ) for one in pressed), strict=True)
    keys, look, noise = (torch.stack(list(part), 1) for part in parts)
    return CondBF(keys, look, noise, torch.stack(states, 1), torch.ones(2, len(pressed)))


@pytest.mark.parametrize("steps", [1, 2])
def test_going_on_at_once_is_dreaming_frame_by_frame(steps: int) -> None:
    network, (latents, pressed) = random_network(), given(46)
    cond = whole(network, latents, pressed, 36)
    at_once = go_on(network, latents[:, :36], cond, sigmas_of(steps), torch.Generator().manual_seed(5))
    noise = torch.Generator().manual_seed(5)
    dream = begin(network, latents[:, :36], pressed[:36], sigmas_of(steps))
    for frame in range(36, 46):
        own = dream.next(pressed[frame], torch.randn(2, PICTURE, 32, generator=noise))
        assert torch.allclose(own, at_once[:, frame - 36], atol=1e-4)


def test_training_predicts_what_dreaming_does() -> None:
    """A target of two_stream sees exactly what the same frame sees when it is dreamed."""
    network, (latents, pressed) = random_network(), given(44)
    noise = torch.randn(2, 10, PICTURE, 32, generator=torch.Generator().manual_seed(2))
    level, reach = torch.full((2, 44), CONTEXT_SIGMA), torch.full((2,), network.shape.window)
    trained = network.two_stream(latents, noise, level, whole(network, latents, pressed, 40), reach)
    dream = begin(network, latents[:, :40], pressed[:40], (1.0,))
    own = dream.next(pressed[40], noise[:, 6])
    assert torch.allclose(trained[:, 6].clamp(-5, 5), own, atol=1e-4)


def test_dice_are_plain_noise_and_offer_objects_one_time_in_ten() -> None:
    luck = new_luck(np.random.default_rng(0), 400)
    drawn = [luck.draw() for _ in range(200)]
    dice = np.stack([dice for dice, _ in drawn])
    offers = np.stack([row[:, [1, 3]] for _, row in drawn])
    assert abs(dice.mean()) < 0.01 and abs(dice.std() - 1) < 0.01
    assert 0.09 < offers.mean() < 0.11


def test_a_frames_noise_carries_the_dice_and_is_else_free() -> None:
    dice = torch.zeros(1, 200, DICE)
    noise = frame_noise(dice, torch.Generator().manual_seed(0))
    assert torch.equal(noise[:, :, :DICE], dice)
    assert 0.8 < float(noise[:, :, DICE:].std()) < 1.2


def test_errors_at_low_noise_count_more_but_not_without_bound() -> None:
    weight = velocity_weight(torch.tensor([1.0, 0.2, 0.01]))
    assert weight[0] == 1.0 and 1 < weight[1] < weight[2] == 4.0


def test_a_frame_is_another_one_when_less_of_its_past_may_be_known() -> None:
    network, (latents, pressed) = random_network(), given(40)
    noise = torch.randn(2, PICTURE, 32, generator=torch.Generator().manual_seed(4))

    def last(known: Known) -> torch.Tensor:
        return begin(network, latents[:, :39], pressed[:39], (1.0,), known).next(pressed[39], noise)

    for cut, counts in ((Cut.KEPT, (0, 1, 2, 8)), (Cut.RECURRENT, (0, 1, 3, 8)), (Cut.BOTH, (0, 1, 2, 8))):
        frames = [*(last(cut.to(count)) for count in counts), last(ALL)]
        for shorter, longer in pairwise(frames):
            assert not torch.allclose(shorter, longer, atol=1e-3), cut


def test_a_frame_knows_nothing_of_what_it_may_not_know() -> None:
    network, (latents, pressed) = random_network(), given(40)
    noise = torch.randn(2, PICTURE, 32, generator=torch.Generator().manual_seed(4))
    changed = latents.clone()
    changed[:, :30] = 1.0  # ten frames and more ago

    def last(pictures: torch.Tensor, known: Known) -> torch.Tensor:
        return begin(network, pictures[:, :39], pressed[:39], (1.0,), known).next(pressed[39], noise)

    assert torch.equal(last(latents, Cut.BOTH.to(8)), last(changed, Cut.BOTH.to(8)))
    assert not torch.allclose(last(latents, ALL), last(changed, ALL), atol=1e-3)


def test_a_report_names_every_figure_that_misses_its_mark() -> None:
    good = ClipFigures(64, 1.0, 0.9, 0.9, 0.95, RoadMotion(0.8, 0.3, 0.7), 8.0)
    alone = msgspec.structs.replace(good, motion=RoadMotion(0.5, 0.3, 0.7))
    rows = tuple(HistoryRow(Cut.BOTH, history, alone if history == 1 else good) for history in (0, 1, 4, 16))
    world = WorldFigures((good, good), good, rows, 0.95, 0.97, good)
    assert world.failures() == []
    forgetful = msgspec.structs.replace(world, histories=(HistoryRow(Cut.KEPT, 1, good), *rows))
    assert forgetful.failures() == ["one frame of the past does as well as all of it (kept cut)"]
    alike = msgspec.structs.replace(world, diversity=0.2)
    assert alike.failures() == ["diversity 0.200 is below 0.9"]
