"""Figures of clips that tell a world from a film of one: each is measured on the simulator's clips as well.

    road motion    flow's speed against the speed shown; flow's turning against the steering keys: correlations
    continuity     share of frames whose objects are those of the frames around them
    diversity      share of pairs of seeds whose roads differ somewhere in their last frames, under the same keys from
                   the same first ones; what the simulator reaches itself stands beside it
    distance       Fréchet distance (Heusel et al. 1706.08500) of colour, edges and change in 40 fields of a picture to
                   clips of the simulator, each world around its look

Legend: S sessions, F frames, D features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from .clips import Clip, Maker, tensors
from .flow import motion
from .judge import Judge

SPAN = 2  # frames either side that a picture's objects are compared with
POP = 0.8  # objects by which a picture may differ from those around it
APART = 4  # frames between the pictures whose change is a feature
KEPT = 24  # directions of features, the simulator's widest
DIFFERENT = 4.0  # columns by which roads differ over a stretch; on the same bends with other objects they reach 3.5
STRETCH, COMPARED = 24, 120  # frames: of a stretch, and the last ones in all that are compared


class RoadMotion(msgspec.Struct, frozen=True):
    """`speed`, `steering`: correlations; `size`: metres moved by flow for each metre that the shown speed says."""

    speed: float
    steering: float
    size: float


@torch.inference_mode()
def road_motion(clip: Clip, judge: Judge) -> RoadMotion:
    pictures = tensors(clip)
    flat = pictures.flatten(0, 1)
    shown = judge(flat).speed_N.reshape(pictures.shape[:2])[:, 1:]
    moved = motion(pictures[:, :-1].flatten(0, 1), pictures[:, 1:].flatten(0, 1))
    speed = _median(moved.speed_N.reshape(shown.shape))
    turned = _median(moved.turned_N.reshape(shown.shape))
    steer = torch.from_numpy(clip.keys_SFK[:, 1:, 1] - clip.keys_SFK[:, 1:, 0]).float()
    fast = shown > 4  # a car that stands cannot steer
    slope = float((speed * shown).sum() / shown.square().sum())
    return RoadMotion(_correlation(speed, shown), _correlation(turned[fast], steer[fast]), slope)


@torch.inference_mode()
def continuity(clip: Clip, judge: Judge) -> float:
    pictures = tensors(clip)
    count = judge(pictures.flatten(0, 1)).objects_N.reshape(pictures.shape[:2])
    around = count.unfold(1, 2 * SPAN + 1, 1).median(-1).values
    return float(((count[:, SPAN:-SPAN] - around).abs() <= POP).float().mean())


@torch.inference_mode()
def diversity(maker: Maker, judge: Judge, seeds: int, frames: int, keys_K: NDArray[np.int8]) -> float:
    """`maker` is asked for one batch of worlds that begin alike and differ in their noise alone."""
    player, centres = maker(0, seeds), []
    for frame in range(frames):
        picture = player.next(np.tile(keys_K, (seeds, 1)))
        if frame >= frames - COMPARED:
            centres.append(judge(picture).centre_NR)
    track_SFR = torch.stack(centres, 1)
    apart_SSFR = (track_SFR[:, None] - track_SFR[None]).abs()
    most_SS = apart_SSFR.unfold(2, STRETCH, STRETCH).mean(-1).amax((2, 3))
    return float((most_SS[np.triu_indices(seeds, 1)] > DIFFERENT).float().mean())


@dataclass(frozen=True, slots=True)
class Reference:
    """Clips of the simulator's: each world's mean features, all worlds' widest directions around them."""

    mean_SD: NDArray[np.float64]
    directions_DK: NDArray[np.float64]
    features_NK: NDArray[np.float64]


def reference_of(clips: Sequence[Clip]) -> Reference:
    """Of clips whose worlds have the same looks, session by session."""
    features_SFD = np.concatenate([seen(clip) for clip in clips], 1)
    mean_SD = features_SFD.mean(1)
    around_ND = (features_SFD - mean_SD[:, None]).reshape(-1, features_SFD.shape[2])
    _, _, directions = np.linalg.svd(around_ND, full_matrices=False)
    kept = directions[:KEPT].T
    return Reference(mean_SD, kept, around_ND @ kept)


def distance(clip: Clip, reference: Reference) -> float:
    """0 for the same distribution, in the reference's variances; the clip's worlds have the looks of the reference."""
    around_SFD = seen(clip) - reference.mean_SD[:, None]
    made = around_SFD.reshape(-1, around_SFD.shape[2]) @ reference.directions_DK
    scale = reference.features_NK.std()
    return _frechet(made / scale, reference.features_NK / scale)


def seen(clip: Clip) -> NDArray[np.float64]:
    """Colour, edges and change in 8 x 5 fields of each picture [S, F - APART, D]."""
    pictures = tensors(clip)
    now, before = pictures[:, APART:], pictures[:, :-APART]
    flat = now.flatten(0, 1)
    grey = flat.mean(1, keepdim=True)
    across, down = (grey[..., 1:] - grey[..., :-1]).abs(), (grey[:, :, 1:] - grey[:, :, :-1]).abs()
    edges = F.pad(across, (0, 1)) + F.pad(down, (0, 0, 0, 1))
    change = (now - before).abs().mean(2).flatten(0, 1)[:, None]
    colour, edge, moved = (F.avg_pool2d(x, 16).flatten(1) for x in (flat, edges, change))
    return torch.cat([colour, (edge + 0.02).log() / 2, 2 * moved], 1).reshape(*now.shape[:2], -1).double().numpy()


def _frechet(a_ND: NDArray[np.float64], b_ND: NDArray[np.float64]) -> float:
    first, second = np.cov(a_ND.T), np.cov(b_ND.T)
    values, vectors = np.linalg.eigh(first)
    root = (vectors * np.sqrt(values.clip(0))) @ vectors.T
    both = np.sqrt(np.linalg.eigvalsh(root @ second @ root).clip(0)).sum()
    apart = np.square(a_ND.mean(0) - b_ND.mean(0)).sum()
    return float(apart + np.trace(first) + np.trace(second) - 2 * both)


def _median(x_SF: Tensor) -> Tensor:
    """Of five frames each."""
    return F.pad(x_SF[:, None], (2, 2), mode="replicate")[:, 0].unfold(1, 5, 1).median(-1).values


def _correlation(a: Tensor, b: Tensor) -> float:
    a, b = a.flatten() - a.mean(), b.flatten() - b.mean()
    return float((a * b).sum() / (a.norm() * b.norm()).clamp_min(1e-6))
