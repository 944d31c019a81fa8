"""Every figure promised for the driving world, measured on held-out seeds: `measure` gives a `QualityReport`.

The judge's own accuracy on held-out simulator frames is measured when it is trained and stored with its weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors import safe_open

from ...models.drive.card import RECIPE
from ...models.drive.runtime import load_networks
from .course import Networks
from .figures import WorldFigures, world_figures
from .journey import Journey, travel
from .judge import load_judge
from .past import Cut
from .players import painter
from .probes import BLEND, CUT, braked, frame_seconds, steered, switched

SEED = 40_001


class QualityReport(msgspec.Struct, frozen=True):
    """Figures and what they must be at least (or at most); shares are in [0, 1]."""

    steps: int
    road_present: float  # >= 0.98 over road_frames frames
    road_present_last_tenth: float
    road_frames: int
    road_present_long: float | None  # the same over 10,000 frames; None in the short form
    steer_sign_12: float  # >= 0.97
    steer_sign_24: float  # >= 0.97
    braked_speed: float  # <= 3 m/s
    braked_speed_simulator: float
    look_time: float  # >= 0.95 each
    look_biome: float
    look_weather: float
    look_after_cut: float  # mean of the three, when the look changes within one frame
    look_journey: float
    sharpness: float  # >= 0.7 of the autoencoder's
    objects: float  # >= 0.6 of the simulator's
    frame_ms: float  # <= 15, one thread
    world: WorldFigures | None  # what clips say (figures.py)
    judge: dict[str, str]  # its accuracy when it was trained

    def failures(self) -> list[str]:
        """Which figures miss their mark, with the numbers."""
        least = {
            "road present": (self.road_present, 0.98),
            "steer sign at 12 frames": (self.steer_sign_12, 0.97),
            "steer sign at 24 frames": (self.steer_sign_24, 0.97),
            "time of day after a switch": (self.look_time, 0.95),
            "biome after a switch": (self.look_biome, 0.95),
            "weather after a switch": (self.look_weather, 0.95),
            "sharpness": (self.sharpness, 0.7),
            "objects": (self.objects, 0.6),
        }
        most = {"speed after braking": (self.braked_speed, 3.0), "frame time in ms": (self.frame_ms, 15.0)}
        if self.road_present_long is not None:
            least["road present in 10,000 frames"] = (self.road_present_long, 0.98)
        low = [f"{name} {value:.3f} is below {mark}" for name, (value, mark) in least.items() if value < mark]
        return low + [f"{name} {value:.2f} is above {mark}" for name, (value, mark) in most.items() if value > mark]


def measure_card(weights: Path, sheets: Path | None, short: bool, progress: Callable[[int], None]) -> QualityReport:
    """Measure the files the card serves, with the recipe's default number of steps."""
    transformer, autoencoder = load_networks(weights)
    sigmas = next(levels for levels in RECIPE.sigmas if len(levels) == RECIPE.default.steps)
    networks = Networks(transformer, autoencoder, sigmas)
    return measure(networks, weights / "judge.safetensors", sheets, short, progress)


@torch.inference_mode()
def measure(
    networks: Networks, judge_file: Path, sheets: Path | None, short: bool, progress: Callable[[int], None]
) -> QualityReport:
    """Measure on one thread. `sheets` gets sample pictures; `progress` is told of frames travelled."""
    torch.set_num_threads(1)
    judge = load_judge(judge_file)
    with safe_open(judge_file, framework="pt") as file:
        judged = file.metadata() or {}
    probe_sessions = 32 if short else 96
    steer = steered(networks, judge, probe_sessions, SEED)
    speed, simulator_speed = braked(networks, judge, probe_sessions, SEED + 1)
    look = switched(networks, judge, probe_sessions, SEED + 2, BLEND)
    cut = switched(networks, judge, probe_sessions, SEED + 2, CUT)
    trip = travel(networks, judge, 10 if short else 20, 300 if short else 2000, SEED + 3, progress)
    far = None if short else travel(networks, judge, 5, 10_000, SEED + 4, progress)
    if sheets is not None:
        for name, journey in (("journey", trip), ("far", far)):
            if journey is not None:
                save_sheet(journey, sheets / f"{name}.png")
    return QualityReport(
        steps=len(networks.sigmas),
        road_present=trip.road,
        road_present_last_tenth=trip.road_last_tenth,
        road_frames=trip.frames,
        road_present_long=None if far is None else far.road,
        steer_sign_12=steer[0],
        steer_sign_24=steer[1],
        braked_speed=speed,
        braked_speed_simulator=simulator_speed,
        look_time=look[0],
        look_biome=look[1],
        look_weather=look[2],
        look_after_cut=sum(cut) / len(cut),
        look_journey=trip.look,
        sharpness=trip.sharp_dreamed / trip.sharp_simulated,
        objects=_objects_ratio(trip, float(judged.get("objects_in_none", "0"))),
        frame_ms=1000 * frame_seconds(networks),
        world=world_figures(partial(painter, networks), (Cut.KEPT,), judge, SEED, short, progress),
        judge=judged,
    )


def _objects_ratio(trip: Journey, in_none: float) -> float:
    """Objects dreamed per simulated one, both above what the judge says of pictures that show none."""
    return max(0.0, trip.objects_dreamed - in_none) / (trip.objects_simulated - in_none)


def save_sheet(journey: Journey, path: Path) -> None:
    """One row per session, time to the right, two pixels for each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_rows(journey.stills, path)


def save_rows(pictures_SFHWC: NDArray[np.uint8], path: Path) -> None:
    rows = np.concatenate([np.concatenate(list(row), 1) for row in pictures_SFHWC], 0)
    Image.fromarray(rows).resize((rows.shape[1] * 2, rows.shape[0] * 2), Image.Resampling.NEAREST).save(path)
