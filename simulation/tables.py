"""A simulation's report for a terminal: what the device holds, what people felt, and how the time went."""

from collections.abc import Callable, Sequence

from rich.console import Group
from rich.table import Table

from .figures import CardFigures, SimulationReport, Spread, late_share, utilisation
from .simulation import Played

BARS = " ▁▂▃▄▅▆▇█"
WIDTH = 48


def tables(report: SimulationReport, played: Played) -> Group:
    origins = [f"{entry.card}: {entry.origin}" for entry in report.cards]
    return Group(_device(report), _cards(report.cards), _time(report, played), *origins)


def _device(report: SimulationReport) -> Table:
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("device", f"{report.device}, {report.policy} level")
    table.add_row("trace", f"{report.trace}, {report.seconds:g} s")
    refused = ", ".join(f"{count} {reason}" for reason, count in report.refused.items()) or "none"
    table.add_row("visits", f"{report.visits}, at most {report.people_most} at once, refused: {refused}")
    if report.in_line_s.count:
        line = report.in_line_s
        table.add_row("waited in line", f"{line.count} came in after {line.p50:g} s (median), {line.p95:g} s (p95)")
    table.add_row("device at work", f"{report.utilisation:.0%}, at most {report.utilisation_most:.0%}")
    table.add_row("steps waiting", f"{report.queue_mean:.2f} on average, at most {report.queue_most}")
    table.add_row("rows of a batch", f"{report.rows_per_batch:.2f}")
    table.add_row("memory of sessions", f"{_gb(report.memory_most)} of {_gb(report.memory_budget)}")
    table.add_row("weights", _gb(report.weight_bytes))
    return table


def _cards(cards: Sequence[CardFigures]) -> Table:
    """A column for each card."""
    table = Table("ms: p50 / p95 / p99", title_justify="left")
    for entry in cards:
        table.add_column(entry.card, justify="right")
    rows: tuple[tuple[str, Callable[[CardFigures], str]], ...] = (
        ("chunk: price of length", lambda card: f"{card.price_ms:.1f} of {card.chunk_ms:.1f}"),
        ("admission holds", lambda card: str(card.holds)),
        ("sessions within SLO", lambda card: f"{card.within_slo} of {card.sessions}"),
        ("  its bound for keys, p95", lambda card: f"{card.slo_ms:.0f}"),
        ("key to frame", lambda card: _spread(card.keys)),
        ("prompt to frame", lambda card: _spread(card.prompts)),
        ("redirect to frame", lambda card: _spread(card.redirects)),
        ("late chunks", lambda card: f"{card.late} of {card.chunks} ({card.late_share:.2%})"),
        ("lateness", lambda card: _spread(card.lateness)),
        ("background chunks", lambda card: str(card.background)),
    )
    for name, shown in rows:
        table.add_row(name, *(shown(card) for card in cards))
    return table


def _time(report: SimulationReport, played: Played) -> Table:
    table = Table(title=f"over {report.seconds:g} s; most", title_justify="left", show_header=False)
    samples = played.samples
    rows: tuple[tuple[str, Sequence[float], str], ...] = (
        ("people", [sample.people for sample in samples], f"{report.people_most}"),
        ("in line", [sample.waiting for sample in samples], f"{max(sample.waiting for sample in samples)}"),
        ("at work", utilisation(played), f"{report.utilisation_most:.0%}"),
        ("steps waiting", [sample.queue for sample in samples], f"{report.queue_most}"),
        ("late", late_share(played), f"{max(late_share(played)):.0%}"),
        ("memory", [sample.memory for sample in samples], _gb(report.memory_most)),
    )
    for name, values, most in rows:
        table.add_row(name, bars(values), most)
    return table


def bars(values: Sequence[float], width: int = WIDTH) -> str:
    """One character for so many values, as high as the largest of them is against the largest of all."""
    top = max(values, default=0.0)
    if top <= 0:
        return " " * width
    parts = [
        values[len(values) * i // width : max(len(values) * (i + 1) // width, len(values) * i // width + 1)]
        for i in range(width)
    ]
    return "".join(BARS[round(max(part) / top * (len(BARS) - 1))] for part in parts)


def _spread(spread: Spread) -> str:
    return f"{spread.p50:.0f} / {spread.p95:.0f} / {spread.p99:.0f}" if spread.count else ""


def _gb(count: int) -> str:
    return f"{count / 1e9:.2f} GB"
