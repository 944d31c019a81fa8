"""How much one address, or one token, may ask for: buckets by name, the least used forgotten. Time is an argument."""

import ipaddress
from collections import Counter, OrderedDict

from ...sessions.rate import Rate
from .spec import AddressLimits

KEPT = 4096


class Rates:
    """Of one server. `refused` counts by the code of the refusal, of every check at the door."""

    def __init__(self, limits: AddressLimits) -> None:
        self._limits = limits
        self._buckets: OrderedDict[tuple[str, str], Rate] = OrderedDict()
        self.refused: Counter[str] = Counter()

    def request(self, who: str, now: float) -> bool:
        """Any HTTP request."""
        return self._allows("requests", who, self._limits.requests_per_s, self._limits.requests_burst, now)

    def offer(self, who: str, now: float) -> bool:
        """A request that makes a connection."""
        return self._allows("offers", who, self._limits.offers_per_s, self._limits.offers_burst, now)

    def _allows(self, kind: str, who: str, per_s: float, burst: int, now: float) -> bool:
        bucket = self._buckets.pop((kind, who), None) or Rate(per_s, burst)
        self._buckets[kind, who] = bucket
        if len(self._buckets) > KEPT:
            self._buckets.popitem(last=False)
        return bucket.allows(now)


def whose(address: str) -> str:
    """One name for all addresses that one subscriber has: an IPv6 address counts by its /64."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.IPv6Network((parsed, 64), strict=False).network_address)
    return str(parsed)
