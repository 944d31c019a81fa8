"""Options by which every room of this server is a room of a LiveKit server, too."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..rtc.access.keys import ApiKey
from ..rtc.livekit.spec import LiveKitSpec
from .errors import fail


@dataclass(frozen=True)
class LiveKitOptions:
    """`public_url`: where pages reach the LiveKit server that this one reaches by another address."""

    livekit_url: Annotated[
        str, typer.Option(help="ws:// or wss:// of a LiveKit server: rooms here are rooms there, too.")
    ] = ""
    livekit_public_url: Annotated[str, typer.Option(help="Where clients reach it, if that is another address.")] = ""
    livekit_key: Annotated[str, typer.Option(envvar="WORLDROOM_LIVEKIT_KEY", help="Name of its API key.")] = ""
    livekit_secret: Annotated[
        str, typer.Option(envvar="WORLDROOM_LIVEKIT_SECRET", help="The key's secret; better in the environment.")
    ] = ""
    livekit_secret_file: Annotated[Path | None, typer.Option(help="File with the secret.")] = None

    def livekit(self) -> LiveKitSpec | None:
        """Fails in one line where something is missing."""
        if not self.livekit_url:
            return None
        for url in (self.livekit_url, self.livekit_public_url or self.livekit_url):
            if not url.startswith(("ws://", "wss://")):
                raise fail(f"'{url}' is not an address of a LiveKit server like wss://example.com")
        secret = self._secret()
        if not (self.livekit_key and secret):
            raise fail("--livekit-url needs --livekit-key, and WORLDROOM_LIVEKIT_SECRET or --livekit-secret-file")
        if importlib.util.find_spec("livekit") is None:
            raise fail("--livekit-url needs LiveKit's SDK: pip install 'worldroom[livekit]'")
        return LiveKitSpec(self.livekit_url, ApiKey(self.livekit_key, secret), self.livekit_public_url)

    def _secret(self) -> str:
        if self.livekit_secret_file is None:
            return self.livekit_secret
        try:
            return self.livekit_secret_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise fail(f"cannot read --livekit-secret-file {self.livekit_secret_file}: {error}") from None
