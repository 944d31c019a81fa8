"""A picture of what drivers saw: least, middle and worst of each figure on one axis of milliseconds (SVG)."""

from html import escape

from ..python.latency import LatencySpread
from .rtc import RtcReport

WIDTH, ROW, LEFT, RIGHT = 900, 46, 250, 40
INK, LINE = "#333", "#2563a8"


def svg(report: RtcReport) -> str:
    """One row a figure: a thin line from min to max, a thick one to p95, a mark at p50."""
    rows: list[tuple[str, LatencySpread]] = [
        ("frame interval, drivers alone", report.alone.interval_ms),
        ("frame interval, all viewers", report.together.interval_ms),
        ("motion to photon, drivers alone", report.alone.photon_ms),
        ("motion to photon, by receipts", report.together.photon_ms),
        ("motion to photon, by pixels", report.together.pixel_photon_ms),
    ]
    most = max(1.0, *(figures.max for _, figures in rows)) * 1.05
    spec = report.spec
    title = (
        f"{spec.sessions} x {spec.viewers} viewers, {spec.delay_ms:g} ms round trip, {spec.jitter_ms:g} ms jitter, "
        f"{spec.loss:.1%} loss: {report.cpu_per_viewer:g} % of a core per further viewer"
    )
    height = 70 + ROW * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
        f'font-size="13" fill="{INK}"><rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="20" y="26" font-size="15">{escape(title)}</text>',
    ]

    def x(ms: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * ms / most

    for number, (name, figures) in enumerate(rows):
        y = 70 + ROW * number
        parts += [
            f'<text x="20" y="{y + 4}">{escape(name)}</text>',
            f'<line x1="{x(figures.min):.1f}" x2="{x(figures.max):.1f}" y1="{y}" y2="{y}" stroke="{LINE}"/>',
            f'<line x1="{x(figures.min):.1f}" x2="{x(figures.p95):.1f}" y1="{y}" y2="{y}" stroke="{LINE}" '
            f'stroke-width="7" opacity=".35"/>',
            f'<circle cx="{x(figures.p50):.1f}" cy="{y}" r="5" fill="{LINE}"/>',
            f'<text x="{LEFT}" y="{y + 20}" font-size="11">p50 {figures.p50:.1f}  p95 {figures.p95:.1f}  '
            f"max {figures.max:.1f} ms of {figures.count}</text>",
        ]
    return "\n".join([*parts, "</svg>\n"])
