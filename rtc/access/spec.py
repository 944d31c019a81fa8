"""Who may come in to one server, as its options say it."""

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from .keys import ApiKeys


@dataclass(frozen=True, slots=True)
class AddressLimits:
    """What one address may do: per second and at once. `viewers`: connections at the same time."""

    requests_per_s: float = 200.0
    requests_burst: int = 1000
    offers_per_s: float = 20.0
    offers_burst: int = 200
    viewers: int = 128


@dataclass(frozen=True, slots=True)
class AccessSpec:
    """`keys` empty = an open server. `loopback`: it listens on this machine alone. `hosts`: names it goes by, beside
    its addresses and `localhost`; `.name` = whatever ends so, `*` = any. `origins`: sites that may embed it, `*` = any.
    `proxies`: whose forwarding headers are believed. `base_path`: what a proxy puts in front of every path.
    """

    keys: ApiKeys = field(default_factory=ApiKeys)
    loopback: bool = True
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    base_path: str = ""
    limits: AddressLimits = field(default_factory=AddressLimits)


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM; the certificate with its chain."""

    certificate: Path
    key: Path
