"""Options that say by which addresses and ports pictures travel, and through whom."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ..rtc.media.ice_servers import IceServersSpec
from .errors import fail
from .livekit import LiveKitOptions


@dataclass(frozen=True)
class NetworkOptions(LiveKitOptions):
    """STUN and TURN servers are handed to clients; `relay`: this server uses them too."""

    loopback: Annotated[bool, typer.Option("--loopback", help="WebRTC over 127.0.0.1 only (tests, benchmarks).")] = (
        False
    )
    udp_ports: Annotated[str | None, typer.Option(help="UDP port range for WebRTC: 50000-50100.")] = None
    media_address: Annotated[
        str | None, typer.Option(help="Public address that is told to viewers in place of this machine's (1:1 NAT).")
    ] = None
    stun: Annotated[list[str] | None, typer.Option(help="stun:host:port for viewers. Repeatable.")] = None
    turn: Annotated[list[str] | None, typer.Option(help="turn:host:port?transport=udp for viewers. Repeatable.")] = None
    turn_secret: Annotated[
        str, typer.Option(envvar="WORLDROOM_TURN_SECRET", help="Shared with the TURN server: credentials that expire.")
    ] = ""
    turn_username: Annotated[str, typer.Option(help="Fixed TURN user, where there is no shared secret.")] = ""
    turn_credential: Annotated[
        str, typer.Option(envvar="WORLDROOM_TURN_CREDENTIAL", help="Its password, which every viewer is told.")
    ] = ""
    turn_ttl: Annotated[int, typer.Option(min=60, help="Seconds for which credentials of a shared secret count.")] = (
        3600
    )
    relay: Annotated[bool, typer.Option("--relay", help="This server, too, is reached through TURN.")] = False

    def ice(self) -> IceServersSpec:
        stun, turn = tuple(self.stun or ()), tuple(self.turn or ())
        for url in stun:
            _check(url, "stun", ("stun:", "stuns:"))
        for url in turn:
            _check(url, "turn", ("turn:", "turns:"))
        if turn and not (self.turn_secret or (self.turn_username and self.turn_credential)):
            raise fail("--turn needs --turn-secret, or --turn-username and --turn-credential")
        if self.relay and not turn:
            raise fail("--relay needs a --turn server")
        fixed = (self.turn_username, self.turn_credential)
        return IceServersSpec(stun, turn, self.turn_secret, *fixed, self.turn_ttl, self.relay)

    def ports(self) -> tuple[int, int] | None:
        if self.udp_ports is None:
            return None
        low, _, high = self.udp_ports.partition("-")
        if not (low.isdigit() and high.isdigit() and 1024 <= int(low) <= int(high) <= 65535):
            raise fail(f"--udp-ports '{self.udp_ports}' is not a range like 50000-50100 (1024..65535)")
        return int(low), int(high)


def _check(url: str, flag: str, schemes: tuple[str, ...]) -> None:
    if not url.startswith(schemes) or len(url) <= len(schemes[0]):
        raise fail(f"--{flag} '{url}' is not an address like {schemes[0]}example.com:3478")
