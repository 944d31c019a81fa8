"""A simulation over time as an SVG file: people, the device's work, lateness, memory. Needs no library."""

from collections.abc import Sequence
from html import escape
from itertools import accumulate

from .figures import SimulationReport, late_share, utilisation
from .simulation import Played

WIDTH, HEIGHT, LEFT, TOP, PANEL, GAP = 900, 660, 70, 50, 120, 30
INK, LINE, SECOND = "#333", "#2563a8", "#c2571a"


def svg(report: SimulationReport, played: Played) -> str:
    """Four panels on one axis of time."""
    samples = played.samples
    times = [sample.at for sample in samples]
    panels: tuple[tuple[str, str, tuple[Sequence[float], ...], float], ...] = (
        ("people, in line", "", ([s.people for s in samples], [s.waiting for s in samples]), 1.0),
        ("device at work", "%", ([100 * part for part in utilisation(played)],), 100.0),
        ("late chunks", "%", ([100 * part for part in late_share(played)],), 1.0),
        (
            "memory of sessions, there for them",
            "GB",
            ([s.memory / 1e9 for s in samples], [report.memory_budget / 1e9] * len(samples)),
            0.001,
        ),
    )
    title = f"{', '.join(card.card for card in report.cards)} on {report.device}, {report.policy} level"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        f'font-size="13" fill="{INK}"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
    ]
    tops = accumulate([TOP, *[PANEL + GAP] * (len(panels) - 1)])
    for top, (name, unit, series, least) in zip(tops, panels, strict=True):
        parts += _panel(top, name, unit, times, series, report.seconds, least)
    parts += [
        f'<text x="{x:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{label}</text>'
        for x, label in _ticks(report.seconds)
    ]
    return "\n".join([*parts, "</svg>\n"])


def _panel(
    top: int,
    name: str,
    unit: str,
    times: Sequence[float],
    series: tuple[Sequence[float], ...],
    seconds: float,
    least: float,
) -> list[str]:
    """A frame, its largest value, and a line for each series: steps, because a sample stands for its whole part."""
    high = max(least, *(max(values, default=0.0) for values in series))
    bottom = top + PANEL
    parts = [
        f'<rect x="{LEFT}" y="{top}" width="{WIDTH - LEFT - 20}" height="{PANEL}" fill="none" stroke="#bbb"/>',
        f'<text x="{LEFT}" y="{top - 6}">{_legend(name)}</text>',
        f'<text x="{LEFT - 6}" y="{top + 12}" text-anchor="end">{high:.3g} {unit}</text>',
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end">0</text>',
    ]
    for values, colour in zip(series, (LINE, SECOND), strict=False):
        path = " ".join(
            f"V{bottom - PANEL * value / high:.1f}H{_x(at, seconds):.1f}"
            for at, value in zip(times, values, strict=True)
        )
        parts.append(f'<path d="M{LEFT} {bottom}{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return parts


def _legend(name: str) -> str:
    """Each word group in the colour of its line."""
    words = zip(name.split(", "), (LINE, SECOND), strict=False)
    return " ".join(f'<tspan fill="{colour}">{escape(word)}</tspan>' for word, colour in words)


def _ticks(seconds: float) -> list[tuple[float, str]]:
    return [(_x(seconds * part / 6, seconds), f"{seconds * part / 6:.0f} s") for part in range(7)]


def _x(at: float, seconds: float) -> float:
    return LEFT + (WIDTH - LEFT - 20) * at / seconds
