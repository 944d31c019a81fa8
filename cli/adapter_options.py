"""Options that say which adapters worlds may have, and which they begin with."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..sessions.messages import AdapterChoice
from .errors import fail


@dataclass(frozen=True, slots=True)
class AdaptersSpec:
    """A folder, and the stack that worlds begin with."""

    folder: Path | None = None
    stack: tuple[AdapterChoice, ...] = ()


@dataclass(frozen=True)
class AdapterOptions:
    """LoRA files beside a card's weights."""

    adapters: Annotated[
        Path | None, typer.Option(help="Folder of LoRA files (safetensors) that drivers may put beside the weights.")
    ] = None
    adapter: Annotated[
        list[str] | None, typer.Option(metavar="NAME[=SCALE]", help="One that worlds begin with; may be repeated.")
    ] = None

    def checked(self) -> AdaptersSpec:
        """Ends the program where it is none."""
        return AdaptersSpec(self.adapters, self._stack())

    def _stack(self) -> tuple[AdapterChoice, ...]:
        asked = self.adapter or []
        if asked and self.adapters is None:
            raise fail("--adapter needs --adapters FOLDER")
        if self.adapters is not None and not self.adapters.is_dir():
            raise fail(f"--adapters {self.adapters} is no folder")
        try:
            parts = [one.partition("=") for one in asked]
            return tuple(AdapterChoice(name, float(scale) if given else 1.0) for name, given, scale in parts)
        except ValueError:
            raise fail(f"--adapter is NAME or NAME=SCALE, got {', '.join(asked)}") from None
