"""Prices on disk: what a card's steps took on this device, so that the next start need not measure them all again.

    <cache>/prices/drive-3f2a91c04b7d.json      one small file for each card, weights, precision, picture and machine

Read at warm-up, written after it and now and then while sessions run, always whole. A file that cannot be read or that
speaks of something else counts as none, and one line in the log says so. Knows no sessions.
"""

import hashlib
import logging
import os
import platform
import tempfile
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import msgspec

from .. import kernels
from ..models.contract.cache_key import key_of
from ..models.contract.loop import StepKind
from .card import CardRuntime
from .scheduling.costs import WINDOW, Costs, Estimate

log = logging.getLogger(__name__)

FORMAT = 3
BYTES_MAX = 1 << 20
Took = Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(min_length=1, max_length=WINDOW)]
"""Microseconds of the last runs, oldest first."""
Count = Annotated[int, msgspec.Meta(ge=1)]


class PricedStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    loop: str
    kind: StepKind
    shape: tuple[int, ...]
    rows: Count
    took_us: Took


class PricedChunk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whole chunks of `steps` denoise steps; `profile`: loop, kind and shape of the steps the last one was made of."""

    steps: Count
    profile: tuple[tuple[str, StepKind, tuple[int, ...]], ...]
    took_us: Took


class PriceSheet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All prices of one card. `of`: whose they are and on which machine, see `subject`."""

    format: int
    of: str
    steps: tuple[PricedStep, ...]
    chunks: tuple[PricedChunk, ...]
    encode_us: Took


class CostStore:
    """Sheets by their subject. Blocking: call it off the event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, card: str, of: str) -> PriceSheet | None:
        """The sheet of that subject, if there is a sound one."""
        path = self._path(card, of)
        try:
            if path.stat().st_size > BYTES_MAX:
                return self._ignored(path, f"it has more than {BYTES_MAX} bytes")
            sheet = msgspec.json.decode(path.read_bytes(), type=PriceSheet)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as problem:
            return self._ignored(path, str(problem))
        if sheet.format != FORMAT:
            return self._ignored(path, f"it has format {sheet.format}, this version reads {FORMAT}")
        if sheet.of != of:
            return self._ignored(path, f"it holds prices of '{sheet.of}', not of '{of}'")
        return sheet

    def write(self, card: str, sheet: PriceSheet) -> None:
        """Replace the subject's sheet; a folder that takes no file costs a line in the log, nothing else."""
        path = self._path(card, sheet.of)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, fresh = tempfile.mkstemp(prefix=path.stem, suffix=".new", dir=self._folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(msgspec.json.encode(sheet))
                os.replace(fresh, path)
            except OSError:
                with suppress(OSError):
                    os.unlink(fresh)
                raise
        except OSError as problem:
            log.warning("prices of '%s' cannot be stored in %s: %s", card, self._folder, problem.strerror)

    def _path(self, card: str, of: str) -> Path:
        return self._folder / f"{card}-{hashlib.sha256(of.encode()).hexdigest()[:12]}.json"

    @staticmethod
    def _ignored(path: Path, why: str) -> None:
        log.warning("stored prices in %s are ignored: %s", path, why)


def subject(served: CardRuntime, device: str) -> str:
    """Everything that must be equal where stored prices are used: what makes the chunks, and the machine it runs on."""
    software = ", ".join(f"{package} {installed(package)}" for package in ("torch", "triton"))
    machine = f"{device}, {_processor()} x{os.cpu_count()}"
    return f"{key_of(served.loaded)} on {machine}, {software}, kernels {_kernels()}"


def sheet_of(served: CardRuntime, costs: Costs, of: str) -> PriceSheet:
    """What is known now. Call when the card is priced: every estimate has at least one figure."""
    return PriceSheet(
        format=FORMAT,
        of=of,
        steps=tuple(
            PricedStep(key.loop, key.kind, key.shape, rows, _micros(estimate))
            for key, rows, estimate in costs.of_card(served.loaded.card.name)
        ),
        chunks=tuple(
            PricedChunk(
                steps, tuple((key.loop, key.kind, key.shape) for key in served.profiles[steps]), _micros(estimate)
            )
            for steps, estimate in served.chunks.items()
        ),
        encode_us=_micros(served.encoding),
    )


def restore(sheet: PriceSheet, served: CardRuntime, costs: Costs) -> None:
    """Take over every stored figure, as if it had been observed before those that are known already."""
    for step in sheet.steps:
        costs.remember(served.key(step.loop, step.kind, step.shape), step.rows, _seconds(step.took_us))
    for chunk in sheet.chunks:
        profile = tuple(served.key(loop, kind, shape) for loop, kind, shape in chunk.profile)
        served.profiles.setdefault(chunk.steps, profile)
        served.chunks[chunk.steps].remember(_seconds(chunk.took_us))
    served.encoding.remember(_seconds(sheet.encode_us))


def _micros(estimate: Estimate) -> tuple[int, ...]:
    return tuple(round(seconds * 1e6) for seconds in estimate.recent)


def _seconds(took_us: tuple[int, ...]) -> tuple[float, ...]:
    return tuple(micros / 1e6 for micros in took_us)


@cache
def _processor() -> str:
    """The processor's name, as the kernel tells it where there is one to ask."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


@cache
def _kernels() -> str:
    """Digest of the kernels' sources: with them changes which one is chosen, and what a step takes."""
    sources = sorted(Path(kernels.__path__[0]).glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]


@cache
def installed(package: str) -> str:
    """Its version: with the device and the maker this is all that the kernels' choose() looks at."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
