"""An observer that digests what each session's steps returned, to find the first step in which two runs differ."""

import hashlib
from dataclasses import dataclass

import msgspec
from worldroom.engine.device.observers import BatchRecord
from worldroom.models.shared import serial


@dataclass(frozen=True, slots=True)
class Probe:
    session: str
    kind: str
    digest: str


class Probes:
    """Results that are structs of arrays, in the order in which they came."""

    def __init__(self) -> None:
        self.all: list[Probe] = []

    def see(self, batch: BatchRecord) -> None:
        for ticket, result in zip(batch.tickets, batch.results, strict=True):
            if isinstance(result, msgspec.Struct):
                digest = hashlib.sha256(serial.dumps(result)).hexdigest()
                self.all.append(Probe(ticket.session, batch.key.kind, digest))

    def of(self, session: str) -> list[Probe]:
        return [probe for probe in self.all if probe.session == session]
