"""The engine's last steps as a Chrome trace (the JSON Object Format that Perfetto reads): a row per device and session.

pid 1 "devices"    one row each: every batch, with its rows and its price
pid 2 "sessions"   one row each: waiting for the device, then the step
"""

from collections.abc import Iterable

import msgspec

from ...engine.api import BatchRan

DEVICES, SESSIONS = 1, 2


class Named(msgspec.Struct, frozen=True):
    name: str


class Detail(msgspec.Struct, frozen=True):
    card: str
    rows: int
    price_us: int
    measured_us: int


class Meta(msgspec.Struct, frozen=True):
    """Names a process or a row."""

    name: str
    ph: str
    pid: int
    tid: int
    args: Named


class Slice(msgspec.Struct, frozen=True):
    """A complete event; `ts` and `dur` in microseconds of the server's monotonic clock."""

    name: str
    ph: str
    pid: int
    tid: int
    ts: float
    dur: float
    args: Detail


class ChromeTrace(msgspec.Struct, frozen=True):
    traceEvents: tuple[Meta | Slice, ...]
    displayTimeUnit: str = "ms"


def chrome_trace(steps: Iterable[BatchRan]) -> ChromeTrace:
    """Steps in the order they ran. A step of no session (warm-up) shows on its device alone."""
    rows: dict[tuple[int, str], int] = {}
    slices: list[Meta | Slice] = []
    for step in steps:
        detail = Detail(step.card, len(step.sessions), round(step.price * 1e6), round(step.seconds * 1e6))
        started, lasted = step.started * 1e6, step.seconds * 1e6
        device = rows.setdefault((DEVICES, step.device), len(rows) + 1)
        slices.append(Slice(step.kind, "X", DEVICES, device, started, lasted, detail))
        for session in filter(None, step.sessions):
            row = rows.setdefault((SESSIONS, session), len(rows) + 1)
            if step.started > step.queued:
                waited = started - step.queued * 1e6
                slices.append(Slice("waits", "X", SESSIONS, row, step.queued * 1e6, waited, detail))
            slices.append(Slice(step.kind, "X", SESSIONS, row, started, lasted, detail))
    named: list[Meta | Slice] = [
        Meta("process_name", "M", DEVICES, 0, Named("devices")),
        Meta("process_name", "M", SESSIONS, 0, Named("sessions")),
    ]
    named += [Meta("thread_name", "M", pid, row, Named(name)) for (pid, name), row in rows.items()]
    return ChromeTrace((*named, *slices))
