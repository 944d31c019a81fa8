"""Short measurements of dreams: does a key steer, does the brake brake, does a new look arrive, how long does it take.

Each probe starts from simulated frames of held-out seeds and reads the dreamed pictures with the judge.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...models.drive.transformer import CondB
from ...models.shared.road.blocks import KVView
from ...models.shared.road.look import THEMES, theme_of
from .course import Networks, drawn, new_course, start_dream
from .judge import Judge
from .simulator.world import switch_theme

LEFT, RIGHT, BRAKE, NONE = (1, 0, 1, 0), (0, 1, 1, 0), (0, 0, 0, 1), (0, 0, 0, 0)
STEER_FRAMES = (12, 24)
BRAKED_FROM, BRAKED_FRAMES = 14.0, 24
BLEND, CUT, SWITCH_FRAMES = 10, 1, 12


def _keys(sessions: int, keys: tuple[int, int, int, int]) -> NDArray[np.int8]:
    return np.tile(np.array(keys, np.int8), (sessions, 1))


def _themes(seed: int, sessions: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, 1]).integers(0, THEMES, sessions)


def steered(networks: Networks, judge: Judge, sessions: int, seed: int) -> tuple[float, ...]:
    """Share of sessions whose road lies more to the right under LEFT than under RIGHT, at STEER_FRAMES."""
    centres = []
    for keys in (LEFT, RIGHT):
        course = new_course(seed, _themes(seed, sessions))
        dream, read = start_dream(networks, course, seed), []
        for frame in range(1, STEER_FRAMES[-1] + 1):
            tokens = dream.next(course.step(_keys(sessions, keys)))
            if frame in STEER_FRAMES:
                read.append(judge(drawn(networks, tokens)).centre_NR[:, 1])
        centres.append(read)
    return tuple(float((left > right).float().mean()) for left, right in zip(*centres, strict=True))


def braked(networks: Networks, judge: Judge, sessions: int, seed: int) -> tuple[float, float]:
    """Mean speed read after BRAKED_FRAMES with the brake down from BRAKED_FROM m/s: dream, simulator."""
    course = new_course(seed, _themes(seed, sessions))
    course.world.speed_B[:] = BRAKED_FROM + 0.25  # the given frames coast
    dream = start_dream(networks, course, seed, _keys(sessions, NONE))
    tokens = torch.empty(0)
    for _ in range(BRAKED_FRAMES):
        tokens = dream.next(course.step(_keys(sessions, BRAKE)))
    return float(judge(drawn(networks, tokens)).speed_N.mean()), float(course.world.speed_B.mean())


def switched(networks: Networks, judge: Judge, sessions: int, seed: int, fade: int) -> tuple[float, float, float]:
    """Share of sessions that show the new time, biome and weather SWITCH_FRAMES after a fade over `fade` began."""
    before = _themes(seed, sessions)
    after = (before + np.random.default_rng([seed, 2]).integers(1, THEMES, sessions)) % THEMES
    course = new_course(seed, before)
    dream = start_dream(networks, course, seed)
    switch_theme(course.world, np.ones(sessions, np.bool_), after, np.full(sessions, fade))
    tokens = torch.empty(0)
    for _ in range(SWITCH_FRAMES):
        tokens = dream.next(course.step())
    wanted = torch.tensor([theme_of(int(number)) for number in after])
    right = (judge(drawn(networks, tokens)).attributes() == wanted).float().mean(0)
    return float(right[0]), float(right[1]), float(right[2])


def frame_seconds(networks: Networks, frames: int = 60) -> float:
    """Median seconds of one driver's frame: the fused pass, further steps, and the decode."""
    model = networks.transformer
    s, g = model.shape, torch.Generator().manual_seed(0)
    kind = model.place.dtype
    k = torch.randn(1, s.temporal, s.tokens, s.heads, s.entries, s.head_width, generator=g).to(kind)
    kv = KVView(k, k, torch.arange(s.entries)[None])
    cond = CondB(torch.zeros(1, s.controls), torch.zeros(1, s.look), torch.zeros(1, s.innovations))
    history = torch.randn(1, 3, s.tokens, s.channels, generator=g).to(kind)
    taken = []
    for _ in range(frames):
        started = time.perf_counter()
        _, x0 = model.commit_denoise(history, cond, history[:, 0], torch.ones(1), cond, kv)
        for sigma in networks.sigmas[1:]:
            x0 = model.denoise(x0, history[:, :2], torch.full((1,), sigma), cond, kv)
        drawn(networks, x0)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def sharpness(picture_N3HW: Tensor) -> Tensor:
    """Mean absolute difference of horizontal neighbours, in 8-bit levels [N]."""
    return (picture_N3HW[..., 1:] - picture_N3HW[..., :-1]).abs().mean((1, 2, 3)) * 127.5
