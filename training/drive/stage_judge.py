"""Stage 6: the judge learns from simulator frames, raw and through the autoencoder, with and without a road or objects.

Pictures are softened and made noisy now and then, so that a soft dream is not taken for a missing road; pictures
whose road is half faded are left out of the road question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ...models.shared.road.autoencoder import DriveAutoencoder, to_model
from ...models.shared.road.look import BIOMES, TIMES
from .data import Episodes, lead_in, new_innovator
from .judge import OBJECT_UNIT, Judge, Verdict
from .simulator.driver import change_themes, new_driver
from .simulator.labels import visible_objects
from .simulator.render import render
from .simulator.world import TOP_SPEED, advance, first_world

BATCH, LACKING = 32, 12  # pictures per step, and how many of them lack something
RATE = 1.5e-3


@dataclass(frozen=True, slots=True)
class Lacking:
    """Pictures whose road is faded to `road` (0 = gone, 1 = there) and that show `objects` objects, often none."""

    frames: NDArray[np.uint8]
    road: NDArray[np.float32]
    objects: NDArray[np.int64]


def make_lacking(sessions: int, frames: int, seed: int) -> Lacking:
    """Simulated pictures: half of them without a road, a quarter with a faint one; half of them without objects."""
    rng = np.random.default_rng([seed, 77])
    world, innovator = first_world(rng, sessions), new_innovator(seed * 7919, sessions)
    lead_in(world, innovator, rng)
    driver = new_driver(rng, sessions)
    pictures, roads, objects = [], [], []
    for _ in range(frames):
        for _ in range(12):
            change_themes(world, rng)
            advance(world, driver.controls(world), innovator.draw())
        kind = rng.random(sessions)
        road = np.where(kind < 0.5, 0.0, np.where(kind < 0.75, rng.uniform(0, 1, sessions), 1.0)).astype(np.float32)
        world.object_BSO[rng.random(sessions) < 0.5] = -1e9
        pictures.append(render(world, road))
        roads.append(road)
        objects.append(visible_objects(world))
    return Lacking(np.concatenate(pictures), np.concatenate(roads), np.concatenate(objects))


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How well the judge reads held-out simulator frames that went through the autoencoder."""

    road_found: float  # share of pictures with a road that are said to have one
    roadless_found: float  # share of pictures without a road that are said to have none
    centre_error_px: float  # mean, at row 46
    speed_error: float  # mean, m/s
    time: float
    biome: float
    weather: float
    objects_seen: float  # mean predicted count / mean true count
    objects_error: float  # mean absolute
    objects_in_none: float  # mean predicted count where there is none


def train(
    data: Episodes,
    lacking: Lacking,
    autoencoder: DriveAutoencoder,
    total: int,
    seed: int,
    report: Callable[[int, float], None],
) -> Judge:
    """Train for `total` steps; reports (step, loss)."""
    torch.manual_seed(seed)
    judge, rng = Judge(), np.random.default_rng([seed, 5])
    optimiser = torch.optim.AdamW(judge.parameters(), lr=RATE, weight_decay=0.01)
    for step in range(total):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / 50) * max(0.02, min(1.0, 1.6 * (1 - step / total)))
        e, t = rng.integers(data.shape[0], size=BATCH - LACKING), rng.integers(data.shape[1], size=BATCH - LACKING)
        i = rng.integers(len(lacking.road), size=LACKING)
        picture = _seen(np.concatenate([data.frames[e, t], lacking.frames[i]]), autoencoder, rng)
        verdict, driven = judge(picture), BATCH - LACKING
        share = torch.from_numpy(np.concatenate([np.ones(driven, np.float32), lacking.road[i]]))
        objects = torch.from_numpy(np.concatenate([data.objects[e, t], lacking.objects[i]])).float()
        loss = _loss(verdict, share, objects, data, e, t)
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        if (step + 1) % 100 == 0:
            report(step + 1, float(loss.detach()))
    return judge.eval()


def _loss(
    verdict: Verdict, share: Tensor, objects_N: Tensor, data: Episodes, e: NDArray[np.int64], t: NDArray[np.int64]
) -> Tensor:
    n = len(e)
    clear = (share > 0.6) | (share < 0.3)
    road = F.binary_cross_entropy_with_logits(verdict.road_N[clear], (share[clear] > 0.5).float())
    centre, look = torch.from_numpy(data.centre[e, t]), torch.from_numpy(data.look[e, t])
    inside = ((centre - 64).abs() < 90).float()
    off = (((verdict.centre_NR[:n] - centre) / 64).abs() * inside).mean()
    speed = ((verdict.speed_N[:n] - torch.from_numpy(data.speed[e, t])) / TOP_SPEED).abs().mean()
    objects = (verdict.objects_N - objects_N).abs().mean() / OBJECT_UNIT
    ends = (len(TIMES), len(TIMES) + len(BIOMES))
    parts = (look[:, : ends[0]], look[:, ends[0] : ends[1]], look[:, ends[1] :])
    logits = (verdict.time_NT[:n], verdict.biome_NB[:n], verdict.weather_NW[:n])
    theme = torch.stack([F.cross_entropy(a, b) for a, b in zip(logits, parts, strict=True)]).mean()
    return road + 3 * off + 5 * speed + objects + theme


@torch.no_grad()
def _seen(frames: NDArray[np.uint8], autoencoder: DriveAutoencoder, rng: np.random.Generator) -> Tensor:
    """Half of the pictures through the autoencoder with a little latent noise, some softened, some noisy."""
    picture = to_model(torch.from_numpy(frames))
    coded = torch.from_numpy(rng.random(len(picture)) < 0.5)
    latent = autoencoder.encode(picture[coded])
    latent = latent + float(rng.uniform(0, 0.25)) * torch.from_numpy(
        rng.standard_normal(latent.shape).astype(np.float32)
    )
    picture[coded] = autoencoder.decode(latent).clamp(-1, 1)
    soft = torch.from_numpy(rng.random(len(picture)) < 0.3)
    picture[soft] = F.avg_pool2d(F.pad(picture[soft], (1, 1, 1, 1), mode="replicate"), 3, 1)
    level = torch.from_numpy(rng.uniform(0, 0.06, len(picture)).astype(np.float32))[:, None, None, None]
    return picture + level * torch.from_numpy(rng.standard_normal(picture.shape).astype(np.float32))


@torch.inference_mode()
def accuracy(judge: Judge, held: Episodes, lacking: Lacking, autoencoder: DriveAutoencoder) -> Accuracy:
    """On every 23rd held-out frame, and on pictures that lack something, of an unseen seed."""
    times = np.arange(11, held.shape[1], 23)
    e, t = (a.ravel() for a in np.meshgrid(np.arange(held.shape[0]), times, indexing="ij"))
    found = _judged(judge, held.frames[e, t], autoencoder)
    gone = _judged(judge, lacking.frames[lacking.road < 0.05], autoencoder)
    bare = _judged(judge, lacking.frames[lacking.objects == 0], autoencoder)
    look = torch.from_numpy(held.look[e, t])
    plain = look.max(1).values > 0.99
    bounds = (0, len(TIMES), len(TIMES) + len(BIOMES), look.shape[1])
    true = torch.stack([look[:, a:b].argmax(1) for a, b in pairwise(bounds)], 1)
    right = (found.attributes() == true)[plain].float().mean(0)
    objects = torch.from_numpy(held.objects[e, t]).float()
    return Accuracy(
        road_found=float((found.road_N > 0).float().mean()),
        roadless_found=float((gone.road_N < 0).float().mean()),
        centre_error_px=float((found.centre_NR[:, 1] - torch.from_numpy(held.centre[e, t, 1])).abs().mean()),
        speed_error=float((found.speed_N - torch.from_numpy(held.speed[e, t])).abs().mean()),
        time=float(right[0]),
        biome=float(right[1]),
        weather=float(right[2]),
        objects_seen=float(found.objects_N.mean() / objects.mean()),
        objects_error=float((found.objects_N - objects).abs().mean()),
        objects_in_none=float(bare.objects_N.mean()),
    )


def _judged(judge: Judge, frames: NDArray[np.uint8], autoencoder: DriveAutoencoder) -> Verdict:
    picture = to_model(torch.from_numpy(np.ascontiguousarray(frames)))
    coded = [
        autoencoder.decode(autoencoder.encode(part)).clamp(-1, 1)
        for part in torch.tensor_split(picture, max(1, len(picture) // 64))
    ]
    verdict: Verdict = judge(torch.cat(coded))
    return verdict
