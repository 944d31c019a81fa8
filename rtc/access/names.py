"""Names in the headers of a request: is this server meant, and does the request come from its own pages? Pure.

A page of another site reaches a server on loopback by a name that is re-pointed at 127.0.0.1. Its `Host` is that name,
so names are refused that nobody gave this server. Addresses cannot be re-pointed.
"""

import ipaddress
import socket
from urllib.parse import urlsplit

from .spec import AccessSpec

DEFAULT_PORTS = {"http": 80, "https": 443}


def host_of(netloc: str) -> str:
    """The name or address in `name`, `name:port` or `[address]:port`, lower case; '' when it is none."""
    try:
        return (urlsplit(f"//{netloc}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def host_allowed(spec: AccessSpec, netloc: str) -> bool:
    """Whether a request for that host means this server."""
    host = host_of(netloc)
    if not host:
        return False
    if host == "localhost" or matches(spec.hosts, host):
        return True
    address = address_of(host)
    if address is not None:
        return address.is_loopback or not spec.loopback
    own = socket.gethostname().lower()
    return not spec.loopback and host in (own, f"{own.partition('.')[0]}.local")


def matches(allowed: tuple[str, ...], host: str) -> bool:
    return any(name in ("*", host) or (name.startswith(".") and host.endswith(name)) for name in allowed)


def origin_allowed(spec: AccessSpec, origin: str) -> bool:
    """Whether that site was named as one that may embed this server."""
    return "*" in spec.origins or origin.lower() in spec.origins


def same_origin(origin: str, scheme: str, netloc: str) -> bool:
    """Whether a page of that origin came from here. The scheme may differ behind a proxy that ends TLS."""
    try:
        parts = urlsplit(origin)
        here = urlsplit(f"{scheme}://{netloc}")
        theirs = (parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme))
        ours = (here.hostname, here.port or DEFAULT_PORTS.get(here.scheme))
        by_proxy = (here.hostname, here.port or DEFAULT_PORTS.get(parts.scheme))
    except ValueError:
        return False
    return parts.hostname is not None and theirs in (ours, by_proxy)
