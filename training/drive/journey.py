"""A long dream through every biome beside its simulated course, judged now and then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ...models.shared.road.autoencoder import to_frames
from ...models.shared.road.look import BIOMES, THEMES, TIMES, Theme, number_of, theme_of
from .course import Networks, drawn, new_course, seen, start_dream
from .judge import Judge
from .probes import sharpness
from .simulator.world import switch_theme

JUDGED_EVERY = 10
LOOK_EVERY = 500  # frames between changes of look
FADE = 10
STILLS = 8  # pictures kept of each session


@dataclass(frozen=True, slots=True)
class Journey:
    """Means over all judged frames of all sessions, and stills [sessions, STILLS, 80, 128, 3]."""

    frames: int
    sessions: int
    road: float
    road_last_tenth: float
    look: float  # share of attributes that match
    objects_dreamed: float  # per frame, by the judge
    objects_simulated: float  # the same on the course's pictures through the autoencoder
    sharp_dreamed: float
    sharp_simulated: float
    stills: NDArray[np.uint8]


def all_biomes(sessions: int) -> NDArray[np.int64]:
    """Themes that go through the biomes first, then the times, with the weather changing."""
    rows = [Theme(i // len(BIOMES) % len(TIMES), i % len(BIOMES), (i + i // len(BIOMES)) % 3) for i in range(sessions)]
    return np.array([number_of(row) for row in rows])


def travel(
    networks: Networks, judge: Judge, sessions: int, frames: int, seed: int, progress: Callable[[int], None]
) -> Journey:
    """Dream `frames` frames under the simulated driver's keys; `progress` is told of each judged frame."""
    rng = np.random.default_rng([seed, 3])
    course = new_course(seed, all_biomes(sessions))
    dream = start_dream(networks, course, seed)
    read: list[torch.Tensor] = []
    stills: list[NDArray[np.uint8]] = []
    kept = set(np.linspace(0, frames - 1, STILLS).astype(int) // JUDGED_EVERY * JUDGED_EVERY + JUDGED_EVERY - 1)
    for frame in range(frames):
        if frame and frame % LOOK_EVERY == 0:
            new = rng.integers(0, THEMES, sessions)
            switch_theme(course.world, np.ones(sessions, np.bool_), new, np.full(sessions, FADE))
        tokens = dream.next(course.step())
        if frame % JUDGED_EVERY != JUDGED_EVERY - 1:
            continue
        picture, truth = drawn(networks, tokens), drawn(networks, seen(networks, course))
        verdict, reference = judge(picture), judge(truth)
        wanted = torch.tensor([theme_of(int(number)) for number in course.world.theme_B])
        match = (verdict.attributes() == wanted).float().mean(1)
        match = torch.where(torch.from_numpy(course.world.fade_B) < 1, torch.nan, match)
        road = (verdict.road_N > 0).float()
        counts = (verdict.objects_N, reference.objects_N)
        read.append(torch.stack([road, match, *counts, sharpness(picture), sharpness(truth)]))
        if frame in kept:
            stills.append(to_frames(picture).numpy())
        progress(JUDGED_EVERY)
    table = torch.stack(read)  # [judged, 6, sessions]
    means = [float(table[:, i].nanmean()) for i in range(6)]
    last = float(table[-max(1, len(table) // 10) :, 0].mean())
    return Journey(
        frames, sessions, means[0], last, means[1], means[2], means[3], means[4], means[5], np.stack(stills, 1)
    )
