"""Roadside objects and the car, drawn once at high resolution and resampled to any size and sub-pixel place.

Two objects per biome, tall enough to be told apart in one or two 8x8 cells where they enter the view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

Array = NDArray[np.float32]
SCALE = 4  # drawing units per nominal pixel
CAR_WIDTH, CAR_HEIGHT = 34, 20
LEANS = 9  # car pictures from full left to full right
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Patch:
    """Premultiplied colour [h, w, 3], coverage [h, w, 1] and glow [h, w, 1] (1 = not dimmed by the night)."""

    colour: Array
    cover: Array
    glow: Array


@dataclass(frozen=True, slots=True)
class Drawing:
    picture: Image.Image
    glow: Image.Image
    metres: float  # height in the world
    beside: float  # metres from the road's edge to its middle


class _Pen:
    """A transparent canvas in nominal pixels that draws shapes, some of which glow."""

    def __init__(self, width: int, height: int) -> None:
        self.picture = Image.new("RGBA", (width * SCALE, height * SCALE), (0, 0, 0, 0))
        self.glow = Image.new("L", (width * SCALE, height * SCALE), 0)
        self._draw, self._light = ImageDraw.Draw(self.picture), ImageDraw.Draw(self.glow)

    def polygon(self, points: Sequence[Point], fill: str) -> None:
        self._draw.polygon([(SCALE * x, SCALE * y) for x, y in points], fill=fill)

    def box(self, x0: float, y0: float, x1: float, y1: float, fill: str, glow: int = 0) -> None:
        bounds = [SCALE * v for v in (x0, y0, x1, y1)]
        self._draw.rectangle(bounds, fill=fill)
        if glow:
            self._light.rectangle(bounds, fill=glow)

    def oval(self, x0: float, y0: float, x1: float, y1: float, fill: str) -> None:
        self._draw.ellipse([SCALE * v for v in (x0, y0, x1, y1)], fill=fill)

    def slice(self, x0: float, y0: float, x1: float, y1: float, fill: str) -> None:
        self._draw.pieslice([SCALE * v for v in (x0, y0, x1, y1)], 180, 360, fill=fill)

    def done(self, metres: float, beside: float) -> Drawing:
        return Drawing(self.picture, self.glow, metres, beside)


def _cactus() -> Drawing:
    p = _Pen(24, 40)
    for b in ((9, 2, 15, 40), (2, 13, 6, 25), (2, 21, 11, 25), (18, 8, 22, 21), (13, 17, 22, 21)):
        p.box(*b, "#3f8a3c")
    p.box(9, 2, 11, 40, "#63b257")
    return p.done(6.0, 3.0)


def _rock() -> Drawing:
    p = _Pen(40, 24)
    p.polygon([(0, 24), (6, 8), (16, 1), (28, 4), (37, 14), (40, 24)], "#8f5536")
    p.polygon([(6, 8), (16, 1), (20, 10), (12, 24), (0, 24)], "#cf8a58")
    return p.done(3.8, 4.5)


def _conifer(dark: str, bright: str, snow: bool) -> Drawing:
    p = _Pen(28, 48)
    p.box(12, 40, 16, 48, "#5a3d28")
    for y, w in ((0, 7), (10, 10), (21, 13)):
        p.polygon([(14, y), (14 - w, y + 20), (14 + w, y + 20)], dark)
        p.polygon([(14, y), (14 - w, y + 20), (14, y + 20)], bright)
        if snow:
            p.polygon([(14, y), (14 - w * 0.6, y + 11), (14, y + 8), (14 + w * 0.6, y + 11)], "#ffffff")
    return p.done(8.5, 3.5)


def _round_tree() -> Drawing:
    p = _Pen(36, 40)
    p.box(16, 24, 20, 40, "#6b4630")
    p.oval(2, 2, 34, 30, "#4a8a2a")
    p.oval(4, 3, 24, 22, "#86b83e")
    return p.done(7.0, 4.5)


def _cabin() -> Drawing:
    p = _Pen(40, 30)
    p.box(5, 13, 35, 30, "#7a4526")
    p.box(5, 13, 12, 30, "#94572f")
    p.polygon([(0, 15), (20, 0), (40, 15), (36, 18), (20, 6), (4, 18)], "#ffffff")
    p.polygon([(5, 16), (20, 5), (35, 16)], "#8a5030")
    p.box(16, 17, 24, 24, "#ffc650", 255)
    return p.done(5.0, 5.0)


def _tower(body: str, edge: str, window: str, metres: float, seed: int) -> Drawing:
    p = _Pen(32, 64)
    p.box(0, 0, 32, 64, body)
    p.box(0, 0, 4, 64, edge, 220)
    lit = np.random.default_rng(seed)
    for y in range(4, 58, 9):
        for x in range(7, 27, 8):
            if lit.random() < 0.7:
                p.box(x, y, x + 5, y + 5, window, 255)
    return p.done(metres, 7.0)


def _palm() -> Drawing:
    p = _Pen(40, 48)
    p.polygon([(17, 48), (23, 48), (22, 14), (18, 14)], "#8a6238")
    leaves: list[list[Point]] = [
        [(20, 14), (2, 12), (0, 22), (8, 16)],
        [(20, 14), (38, 12), (40, 22), (32, 16)],
        [(20, 15), (8, 1), (1, 6), (11, 9)],
        [(20, 15), (32, 1), (39, 6), (29, 9)],
        [(20, 15), (17, 1), (23, 1)],
        [(20, 13), (9, 25), (14, 18)],
        [(20, 13), (31, 25), (26, 18)],
    ]
    for leaf in leaves:
        p.polygon(leaf, "#2f9a4a")
    return p.done(8.0, 3.5)


def _parasol() -> Drawing:
    p = _Pen(34, 32)
    p.box(15, 10, 19, 32, "#e8e0d0")
    p.slice(0, 2, 34, 34, "#f0483c")
    p.slice(7, 2, 27, 34, "#ffffff")
    p.slice(12, 2, 22, 34, "#f0483c")
    return p.done(4.2, 3.5)


DRAWINGS: tuple[tuple[Drawing, Drawing], ...] = (  # in the order of BIOMES; kind -1, kind +1
    (_cactus(), _rock()),
    (_conifer("#1f6a34", "#2c8441", False), _round_tree()),
    (_conifer("#dfeaf5", "#8fb0c4", True), _cabin()),
    (_tower("#3b3566", "#ff3fb0", "#ffcf5a", 15.0, 1), _tower("#20406a", "#39e6ff", "#7df0ff", 11.0, 2)),
    (_palm(), _parasol()),
)


@lru_cache(maxsize=24_000)
def object_patch(biome: int, kind: int, height_halves: int, x_quarter: int, y_half: int) -> Patch:
    """The object `height_halves`/2 pixels tall, its left/top edge at a fraction of a pixel (x/4, y/2)."""
    drawing = DRAWINGS[biome][kind]
    height = height_halves / 2
    width = height * drawing.picture.width / drawing.picture.height
    columns, rows = int(np.ceil(width + x_quarter / 4)), int(np.ceil(height + y_half / 2))
    per_pixel = drawing.picture.height / height
    margin = int(np.ceil(per_pixel)) + 1
    left, top = margin - per_pixel * x_quarter / 4, margin - per_pixel * y_half / 2
    bounds = (left, top, left + per_pixel * columns, top + per_pixel * rows)

    def resample(plane: Image.Image) -> Array:
        wide = Image.new("F", (plane.width + 2 * margin + 2, plane.height + 2 * margin + 2), 0)
        wide.paste(plane, (margin, margin))
        return np.asarray(wide.resize((columns, rows), Image.Resampling.BOX, box=bounds), np.float32)

    rgba = np.asarray(drawing.picture, np.float32) / 255
    planes = [rgba[..., i] * rgba[..., 3] for i in range(3)] + [rgba[..., 3]]
    red, green, blue, cover = (resample(Image.fromarray(np.ascontiguousarray(plane))) for plane in planes)
    glow = resample(Image.fromarray(np.asarray(drawing.glow, np.float32) / 255))
    return Patch(np.stack([red, green, blue], -1), cover[..., None], glow[..., None])


def _car(lean: float, braking: bool) -> Patch:
    """Rear view, leaning by lean in [-1, 1] and shifted up to 2 pixels the same way."""
    unit = 4
    im = Image.new("RGBA", (CAR_WIDTH * unit, CAR_HEIGHT * unit), (0, 0, 0, 0))
    d, s, x0 = ImageDraw.Draw(im), lean * 8, 8
    d.ellipse((x0, 64, x0 + 120, 80), fill=(0, 0, 0, 110))
    for x in (8, 92):
        d.rectangle((x0 + x, 54, x0 + x + 20, 78), fill="#15151a")
    d.polygon([(x0 + 4, 44), (x0 + 116, 44), (x0 + 112, 68), (x0 + 8, 68)], fill="#c81e2a")
    d.polygon([(x0 + 4, 44), (x0 + 116, 44), (x0 + 110, 36), (x0 + 10, 36)], fill="#e8424a")
    d.polygon([(x0 + 24 + s, 12), (x0 + 96 + s, 12), (x0 + 108, 38), (x0 + 12, 38)], fill="#a81822")
    d.polygon([(x0 + 30 + s, 16), (x0 + 90 + s, 16), (x0 + 98, 36), (x0 + 22, 36)], fill="#25303f")
    lamp = Image.new("L", im.size, 0)
    for x in (8, 84):
        bounds = (x0 + x, 48, x0 + x + 28, 60)
        d.rectangle(bounds, fill="#ff5a4a" if braking else "#7a1018")
        ImageDraw.Draw(lamp).rectangle(bounds, fill=240 if braking else 0)
    d.rectangle((x0 + 44, 52, x0 + 76, 62), fill="#d8d8d0")
    placed = [
        plane.rotate(-lean * 8, Image.Resampling.BICUBIC, center=(68, 74), translate=(round(lean * 8), 0))
        for plane in (im, lamp)
    ]
    small = [plane.resize((CAR_WIDTH, CAR_HEIGHT), Image.Resampling.BOX) for plane in placed]
    rgba, glow = (np.asarray(np.asarray(plane) / 255, np.float32) for plane in small)
    return Patch(rgba[..., :3] * rgba[..., 3:], rgba[..., 3:], glow[..., None])


def _car_patches() -> list[list[Patch]]:
    make: Callable[[int, bool], Patch] = lambda i, braking: _car(i * 2 / (LEANS - 1) - 1, braking)  # noqa: E731
    return [[make(i, False), make(i, True)] for i in range(LEANS)]


CAR = _car_patches()
