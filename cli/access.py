"""Options that say who may come in to a server; `worldroom token` makes the tokens it asks for."""

import ipaddress
import re
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated

import typer

from ..rtc.access.keys import ApiKey, ApiKeys, BadKey
from ..rtc.access.spec import AccessSpec, AddressLimits, Tls
from .errors import fail
from .room_options import drivers_of

ApiKeyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--api-key",
        envvar="WORLDROOM_API_KEYS",
        metavar="NAME:SECRET",
        help="Ask everybody for a token signed with this key. Repeatable; `worldroom token --fresh-key` makes one.",
    ),
]


@dataclass(frozen=True)
class AccessOptions:
    """Who may come in. `--open` is `everybody`: `open` is a name of Python's."""

    api_key: ApiKeyOption = None
    everybody: Annotated[bool, typer.Option("--open", help="Let everybody in without a token, from anywhere.")] = False
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name this server goes by: play.example.com, or .example.com. Repeatable."),
    ] = None
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="A site that may embed rooms: https://example.com. Repeatable.")
    ] = None
    trusted_proxy: Annotated[
        list[str] | None, typer.Option(help="Address or network whose X-Forwarded-* headers are believed. Repeatable.")
    ] = None
    base_path: Annotated[str, typer.Option(help="What a proxy puts in front of every path: /world.")] = ""
    offers_per_s: Annotated[
        float, typer.Option(min=0.1, help="Connections that one address may ask for in a second.")
    ] = AddressLimits().offers_per_s
    offers_burst: Annotated[int, typer.Option(min=1, help="So many at once, before that rate counts.")] = (
        AddressLimits().offers_burst
    )
    requests_per_s: Annotated[float, typer.Option(min=1, help="HTTP requests of one address in a second.")] = (
        AddressLimits().requests_per_s
    )
    requests_burst: Annotated[int, typer.Option(min=1, help="So many at once, before that rate counts.")] = (
        AddressLimits().requests_burst
    )
    address_viewers: Annotated[int, typer.Option(min=1, help="Viewers that one address may have connected.")] = (
        AddressLimits().viewers
    )
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate with its chain (PEM): serve https.")] = None
    tls_key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None

    def spec(self, host: str) -> AccessSpec:
        """What they ask of a server that listens on `host`; fails in one line."""
        keys = _keys(self.api_key or ())
        if not (is_loopback(host) or keys or self.everybody):
            raise fail(
                f"--host {host} lets other machines in, and there is no API key: give --api-key (`worldroom token "
                "--fresh-key` makes one), or --open to let everybody drive"
            )
        return AccessSpec(
            keys=keys,
            loopback=is_loopback(host),
            hosts=tuple(name.lower() for name in self.allow_host or ()),
            origins=_origins(self.allow_origin or ()),
            proxies=_networks(self.trusted_proxy or ()),
            base_path=_path(self.base_path),
            limits=AddressLimits(
                self.requests_per_s, self.requests_burst, self.offers_per_s, self.offers_burst, self.address_viewers
            ),
        )

    def tls(self) -> Tls | None:
        certificate, key = self.tls_cert, self.tls_key
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            raise fail("--tls-cert and --tls-key go together")
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise fail(f"cannot use {certificate} with {key}: {error}") from None
        return Tls(certificate, key)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _keys(given: Iterable[str]) -> ApiKeys:
    """From flags, or the environment, where blanks have split `name: secret` in two."""
    try:
        return ApiKeys.parse([",".join(given).replace(":,", ":")])
    except BadKey as error:
        raise fail(str(error)) from None


def _origins(given: Iterable[str]) -> tuple[str, ...]:
    """Each `*` or `scheme://host[:port]`, lower case."""
    for origin in given:
        if origin != "*" and re.fullmatch(r"https?://[^/\s?#@]+", origin) is None:
            raise fail(f"--allow-origin '{origin}' is not a site like https://example.com")
    return tuple(origin.lower() for origin in given)


def _networks(given: Iterable[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ipaddress.ip_network(text, strict=False) for text in given)
    except ValueError as error:
        raise fail(f"--trusted-proxy: {error}") from None


def _path(given: str) -> str:
    """'' or '/one/two' without a slash at its end."""
    path = given.rstrip("/")
    if path and re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", path) is None:
        raise fail(f"--base-path '{given}' is not a path like /world")
    return path


def token(
    room: Annotated[str, typer.Argument(help="The room that the token opens.")] = "",
    role: Annotated[str, typer.Option(help="driver, co-driver, spectator or recorder.")] = "driver",
    identity: Annotated[str | None, typer.Option(help="Whose seat it is, however often they come.")] = None,
    name: Annotated[str | None, typer.Option(help="What the others in the room read.")] = None,
    metadata: Annotated[str, typer.Option(help="The application's own words about them.")] = "",
    ttl: Annotated[float, typer.Option(min=1, help="Seconds for which it opens the room.")] = 6 * 3600.0,
    drivers: Annotated[
        str | None, typer.Option(help="How several people drive the room, if it is opened by this token: as in serve.")
    ] = None,
    api_key: ApiKeyOption = None,
    fresh_key: Annotated[bool, typer.Option("--fresh-key", help="Print a new API key instead of a token.")] = False,
) -> None:
    """Make a token that opens a room of a server with the same API key."""
    from ..rtc.access.tokens import mint
    from ..sessions.messages import Grant
    from ..sessions.rooms.rights import Rights

    if fresh_key:
        key = ApiKey.fresh()
        typer.echo(f"{key.name}:{key.secret}")
        return
    keys = _keys(api_key or ())
    if not room or not keys:
        raise fail("a token needs a ROOM and an API key: --api-key or WORLDROOM_API_KEYS")
    if role not in tuple(Grant):
        raise fail(f"no role '{role}': there are {', '.join(Grant)}")
    rule = None if drivers is None else drivers_of(drivers)
    rights = Rights(Grant(role), identity, name, metadata, drivers=rule)
    typer.echo(mint(keys.first(), room, rights, time.time(), ttl))
