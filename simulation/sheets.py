"""From a device's name or file to the prices of cards on it.

h100, h200, ..             computed from the card's footprint and the vendor's data sheet
epyc-core                  measured here; `drive` alone (`sheets/`)
FILE, a data sheet         computed; the fields of `models/devices.py`: {"name": "mine", "memory_gb": 96, ...}
FILE, a price sheet        measured by a server or by `bench model --json` (`measured.py`)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..models.devices import DATA_SHEETS, DataSheet
from .measured import measured
from .prices import CardPrices
from .roofline import computed

MEASURED = {"epyc-core": Path(__file__).parent / "sheets" / "drive-epyc-core.json"}


class UnknownDevice(LookupError):
    """Neither a name nor a file."""


@dataclass(frozen=True, slots=True)
class Priced:
    """Cards on one device. `memory_bytes` None: the sheet does not say."""

    device: str
    memory_bytes: int | None
    cards: tuple[CardPrices, ...]


def priced(names: Sequence[str], device: str) -> Priced:
    """Raises `UnknownDevice`, `BadSheet`, `OSError`, and what `computed` raises."""
    if device in DATA_SHEETS:
        return _computed(names, DATA_SHEETS[device])
    path = MEASURED.get(device, Path(device))
    if not path.is_file():
        known = ", ".join((*DATA_SHEETS, *MEASURED))
        raise UnknownDevice(f"no device and no file '{device}': devices are {known}")
    try:
        return _computed(names, msgspec.json.decode(path.read_bytes(), type=DataSheet))
    except msgspec.MsgspecError:  # then it holds prices
        return Priced(device, None, measured(path, names))


def data_sheet(device: str) -> DataSheet:
    """Of a name or file. Raises `UnknownDevice`, `OSError`, or `msgspec.MsgspecError` for a file that is none."""
    if device in DATA_SHEETS:
        return DATA_SHEETS[device]
    if not Path(device).is_file():
        raise UnknownDevice(f"no device and no file '{device}': devices are {', '.join(DATA_SHEETS)}")
    return msgspec.json.decode(Path(device).read_bytes(), type=DataSheet)


def _computed(names: Sequence[str], sheet: DataSheet) -> Priced:
    return Priced(sheet.name, sheet.memory_gb * 10**9, tuple(computed(name, sheet) for name in names))
