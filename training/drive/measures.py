"""Figures of clips that tell a world from a film of one: each is measured on the simulator's clips as well.

    road motion    flow's speed against the speed shown; flow's turning against the steering keys: correlations
    continuity     share of frames whose objects are those of the frames around them
    diversity      share of pairs of seeds whose roads differ, under the same keys from the same first frames
    distance       Fréchet distance (Heusel et al. 1706.08500) of what the judge sees, picture and change, to clips of
                   the simulator

Legend: S sessions, F frames, D features.
"""

from __future__ import annotations

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
DIFFERENT = 6.0  # columns by which two roads differ, on average over the frames compared
COMPARED = 24  # the last frames, of a pair of roads


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
            centres.append(judge(picture).centre_NR[:, 0])
    track_SF = torch.stack(centres, 1)
    apart = (track_SF[:, None] - track_SF[None]).abs().mean(-1)
    return float((apart[np.triu_indices(seeds, 1)] > DIFFERENT).float().mean())


@dataclass(frozen=True, slots=True)
class Reference:
    """What the judge sees in clips of the simulator, in its own widest directions."""

    mean_D: NDArray[np.float64]
    directions_DK: NDArray[np.float64]
    features_NK: NDArray[np.float64]


def reference_of(clips: list[Clip], judge: Judge) -> Reference:
    features = np.concatenate([seen(clip, judge) for clip in clips])
    mean = features.mean(0)
    _, _, directions = np.linalg.svd(features - mean, full_matrices=False)
    kept = directions[:KEPT].T
    return Reference(mean, kept, (features - mean) @ kept)


def distance(clip: Clip, judge: Judge, reference: Reference) -> float:
    """0 for the same distribution; in units of the reference's variance, summed over its directions."""
    made = (seen(clip, judge) - reference.mean_D) @ reference.directions_DK
    scale = reference.features_NK.std(0).mean()
    return _frechet(made / scale, reference.features_NK / scale)


@torch.inference_mode()
def seen(clip: Clip, judge: Judge) -> NDArray[np.float64]:
    """Features of each picture and of its change [S * (F - APART), D]."""
    pictures = tensors(clip)
    hidden = judge.features(pictures.flatten(0, 1)).reshape(*pictures.shape[:2], -1)
    both = torch.cat([hidden[:, APART:], 2 * (hidden[:, APART:] - hidden[:, :-APART])], -1)
    return both.flatten(0, 1).double().numpy()


def _frechet(a_ND: NDArray[np.float64], b_ND: NDArray[np.float64]) -> float:
    first, second = np.cov(a_ND.T), np.cov(b_ND.T)
    values, vectors = np.linalg.eigh(first)
    root = (vectors * np.sqrt(values.clip(0))) @ vectors.T
    both = np.sqrt(np.linalg.eigvalsh(root @ second @ root).clip(0)).sum()
    apart = np.square(a_ND.mean(0) - b_ND.mean(0)).sum()
    return float(apart + np.trace(first) + np.trace(second) - 2 * both)


def _median(x_SF: Tensor) -> Tensor:
    """Of three frames each."""
    return F.pad(x_SF[:, None], (1, 1), mode="replicate")[:, 0].unfold(1, 3, 1).median(-1).values


def _correlation(a: Tensor, b: Tensor) -> float:
    a, b = a.flatten() - a.mean(), b.flatten() - b.mean()
    return float((a * b).sum() / (a.norm() * b.norm()).clamp_min(1e-6))
