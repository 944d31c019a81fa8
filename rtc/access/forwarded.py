"""Who really asked, when a proxy that we trust passed the request on. Pure: headers in, names out.

From anybody else `X-Forwarded-*` is a claim, and ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from .names import address_of
from .spec import AccessSpec


@dataclass(frozen=True, slots=True)
class Caller:
    """`address`: of the client itself. `scheme` and `host`: as the client wrote them."""

    address: str
    scheme: str
    host: str


def caller_of(spec: AccessSpec, peer: str, scheme: str, headers: Mapping[str, str]) -> Caller:
    """`headers` by lower-case name; the chain of addresses is read from its trusted end."""
    host = headers.get("host", "")
    if not _trusted(spec, peer):
        return Caller(peer, scheme, host)
    chain = [part.strip() for part in headers.get("x-forwarded-for", "").split(",") if part.strip()]
    address = peer
    while chain and _trusted(spec, address):
        address = chain.pop()
    told = headers.get("x-forwarded-proto", scheme).split(",")[-1].strip().lower()
    host = headers.get("x-forwarded-host", host).split(",")[-1].strip()
    return Caller(address, told if told in ("http", "https") else scheme, host)


def _trusted(spec: AccessSpec, peer: str) -> bool:
    address = address_of(peer)
    return address is not None and any(address in network for network in spec.proxies)
