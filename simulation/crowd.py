"""How many people a device holds: one more at a time, all of them measured each time, until one is refused."""

import msgspec
from rich.table import Table

from .duty_cycle import crowd
from .figures import guaranteed, report, slo, within_slo
from .simulation import Setup, play

MOST = 32


class CrowdRow(msgspec.Struct, frozen=True):
    """Everybody with so many people in. `late_most`: the largest share of late chunks of any of them."""

    people: int
    within_slo: int
    late_most: float
    key_p95_ms: float
    utilisation: float
    memory: int


class CrowdReport(msgspec.Struct, frozen=True):
    """`held`: the most people who were in at once and all within SLO. `refused`: why the next one was sent away."""

    device: str
    policy: str
    cards: tuple[str, ...]
    origins: tuple[str, ...]
    seconds: float
    held: int
    refused: str
    rows: tuple[CrowdRow, ...]


def hold(setup: Setup, seconds: float, seed: int, most: int = MOST) -> CrowdReport:
    """With several cards people take turns among them."""
    rows: list[CrowdRow] = []
    refused = ""
    bounds = {prices.card.name: slo(prices) for prices in setup.cards}
    for count in range(1, most + 1):
        played = play(setup, crowd(count, seconds, seed))
        refused = next((str(person.refused) for person in played.people if person.refused), "")
        if refused:
            break
        people, figures = guaranteed(played.people), report(setup, played)
        rows.append(
            CrowdRow(
                people=count,
                within_slo=sum(within_slo(person, bounds[person.card]) for person in people),
                late_most=max(person.missed / max(1, person.chunks) for person in people),
                key_p95_ms=max(card.keys.p95 for card in figures.cards),
                utilisation=figures.utilisation,
                memory=figures.memory_most,
            )
        )
    held = max((row.people for row in rows if row.within_slo == row.people), default=0)
    cards, origins = tuple(bounds), tuple(prices.origin for prices in setup.cards)
    return CrowdReport(setup.device, setup.spec.policy, cards, origins, seconds, held, refused, tuple(rows))


def table(report: CrowdReport) -> Table:
    said = f"the next is refused: {report.refused}" if report.refused else "no one was refused"
    who = f"{report.held} of {len(report.rows)} people who were let in"
    title = f"{', '.join(report.cards)} on {report.device}: {who} are within SLO at once; {said}"
    shown = Table(title=title, title_justify="left", caption="; ".join(report.origins), caption_justify="left")
    for heading in ("people", "within SLO", "most late", "key p95 ms", "at work", "memory GB"):
        shown.add_column(heading, justify="right")
    for row in report.rows:
        figures = (f"{row.late_most:.1%}", f"{row.key_p95_ms:.0f}", f"{row.utilisation:.0%}", f"{row.memory / 1e9:.2f}")
        shown.add_row(str(row.people), str(row.within_slo), *figures)
    return shown
