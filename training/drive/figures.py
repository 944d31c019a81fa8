"""What clips of a world of the road say of it, beside clips of the simulator: as it goes on, and with less of its past.

The same for every world that can be played (clips.py); which figure must reach what is its card's affair.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Protocol

import msgspec
import numpy as np
import torch

from .clips import Clip, Player, play, tensors
from .judge import Judge
from .measures import RoadMotion, continuity, distance, diversity, reference_of, road_motion
from .past import ALL, Cut, Known
from .players import simulator
from .probes import sharpness

HISTORIES = (0, 1, 4, 16)
SPAN = 48  # frames of a clip
CUT = 160  # frame up to which worlds with less of their past are driven: what is lost adds up
TENTH = 0.1  # by which a figure must fall when a past that matters is cut to one frame
ALIKE = 12  # worlds that begin alike
GAS = np.array((0, 0, 1, 0), np.int8)


class Worlds(Protocol):
    """Makes worlds of a seed: a frame may know so much of its past; `alike` worlds differ in chance alone."""

    def __call__(self, seed: int, sessions: int, known: Known = ALL, alike: bool = False) -> Player: ...


class ClipFigures(msgspec.Struct, frozen=True):
    """Of one clip: share of pictures with a road, sharpness and objects against the simulator's, and measures.py."""

    frame: int
    road: float
    sharpness: float
    objects: float
    continuity: float
    motion: RoadMotion
    distance: float


class HistoryRow(msgspec.Struct, frozen=True):
    """The same worlds when a frame may know but `history` frames of its past through what is cut."""

    cut: Cut
    history: int
    figures: ClipFigures


class WorldFigures(msgspec.Struct, frozen=True):
    """`clips` end at later and later frames; `whole` at CUT, as `histories` do; `simulated`: held-out clips of the
    simulator, measured alike.

    `diversity_simulated`: that of the simulator's own worlds from the first frames of one.
    """

    clips: tuple[ClipFigures, ...]
    whole: ClipFigures
    histories: tuple[HistoryRow, ...]
    diversity: float
    diversity_simulated: float
    simulated: ClipFigures

    def failures(self) -> list[str]:
        """Which figures miss their mark, with the numbers."""
        last = self.clips[-1]
        least = {
            f"road present at frame {last.frame}": (last.road, 0.97),
            f"sharpness at frame {last.frame}": (last.sharpness, 0.75),
            f"objects at frame {last.frame}": (last.objects, 0.7),
            f"continuity at frame {last.frame}": (last.continuity, 0.9),
            "diversity": (self.diversity, 0.9),
        }
        low = [f"{name} {value:.3f} is below {mark}" for name, (value, mark) in least.items() if value < mark]
        for row in self.histories:
            if row.history == 1 and self._fell(row.figures) < TENTH:
                low.append(f"one frame of the past does as well as all of it ({row.cut} cut)")
        return low

    def _fell(self, alone: ClipFigures) -> float:
        """By how much motion or continuity is worse than with the whole past, at most."""
        motion, cut = self.whole.motion, alone.motion
        fell = motion.speed - cut.speed, motion.steering - cut.steering, self.whole.continuity - alone.continuity
        return max(fell)


@torch.inference_mode()
def world_figures(
    worlds: Worlds, cuts: tuple[Cut, ...], judge: Judge, seed: int, short: bool, progress: Callable[[int], None]
) -> WorldFigures:
    """`cuts`: the ways into the past these worlds have. `short` ends at frame 256 with few worlds, else at 2,000.

    `progress` is told of frames.
    """
    sessions, ends = (8, (16 + SPAN, CUT, 256)) if short else (16, (16 + SPAN, CUT, 256, 2000))
    windows = tuple((end - SPAN, end) for end in ends)
    real = play(simulator, judge, sessions, tuple((at, at + SPAN) for at in (20, 120, 220)), seed + 7)
    (still,) = play(simulator, judge, sessions, ((20, 20 + SPAN),), seed + 8)
    reference = reference_of(real)
    figures = partial(_figures, judge=judge, like=real[0], distance_of=lambda clip: distance(clip, reference))
    clips = tuple(figures(clip) for clip in play(worlds, judge, sessions, windows, seed))
    progress(sessions * ends[-1])
    rows = []
    for cut, history in product(cuts, HISTORIES):
        (clip,) = play(partial(worlds, known=cut.to(history)), judge, sessions, windows[1:2], seed)
        rows.append(HistoryRow(cut, history, figures(clip)))
        progress(sessions * CUT)
    apart, apart_simulated = (_apart(made, judge, seed + 3) for made in (worlds, simulator))
    return WorldFigures(clips, clips[1], tuple(rows), apart, apart_simulated, figures(still))


def _apart(worlds: Worlds, judge: Judge, seed: int) -> float:
    return diversity(lambda _, sessions: worlds(seed, sessions, alike=True), judge, ALIKE, 240, GAS)


def _figures(clip: Clip, judge: Judge, like: Clip, distance_of: Callable[[Clip], float]) -> ClipFigures:
    seen, real = judge(tensors(clip).flatten(0, 1)), judge(tensors(like).flatten(0, 1))
    sharp = [float(sharpness(tensors(one).flatten(0, 1)).mean()) for one in (clip, like)]
    return ClipFigures(
        frame=clip.first + clip.keys_SFK.shape[1],
        road=float((seen.road_N > 0).float().mean()),
        sharpness=sharp[0] / sharp[1],
        objects=max(0.0, float(seen.objects_N.mean() / real.objects_N.mean())),
        continuity=continuity(clip, judge),
        motion=road_motion(clip, judge),
        distance=distance_of(clip),
    )
