"""Prompt features by their content, shared by all sessions. Pure; knows no tensor library."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .slab_pool import PoolCorrupt, PoolFull


class UnknownFeature(LookupError):
    """A feature that was never computed here, or is gone."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


@dataclass(slots=True)
class _Feature:
    value: object
    size: int
    users: int


class FeatureCache:
    """Features by content hash, counted by user. Unused ones stay until room is needed, least recently used first.

    `dropped` hears the key of each that had to go.
    """

    def __init__(self, entries_max: int, bytes_max: int, dropped: Callable[[str], None] = lambda key: None) -> None:
        self.entries_max, self.bytes_max, self._dropped = entries_max, bytes_max, dropped
        self.bytes_used = 0
        self.evicted = 0
        self._features: OrderedDict[str, _Feature] = OrderedDict()

    @property
    def entries(self) -> int:
        return len(self._features)

    @property
    def in_use(self) -> int:
        """Features that somebody may still ask for."""
        return sum(1 for feature in self._features.values() if feature.users)

    def retain(self, key: str) -> bool:
        """Count one more user of a feature that is here; False when it has to be computed."""
        feature = self._features.get(key)
        if feature is None:
            return False
        feature.users += 1
        self._features.move_to_end(key)
        return True

    def put(self, key: str, value: object, size: int) -> None:
        """Keep a computed feature for one user; raises `PoolFull` when everything here is in use."""
        if self.retain(key):
            return
        while self._features and (self.entries >= self.entries_max or self.bytes_used + size > self.bytes_max):
            idle = next((k for k, feature in self._features.items() if feature.users == 0), None)
            if idle is None:
                break
            self.bytes_used -= self._features.pop(idle).size
            self.evicted += 1
            self._dropped(idle)
        if self.entries >= self.entries_max or self.bytes_used + size > self.bytes_max:
            raise PoolFull(
                f"{self.entries} of {self.entries_max} features and {self.bytes_used} of {self.bytes_max} bytes are in "
                f"use, {size} more do not fit"
            )
        self._features[key] = _Feature(value, size, 1)
        self.bytes_used += size

    def get(self, key: str) -> object:
        """The feature; raises `UnknownFeature`."""
        if key not in self._features:
            raise UnknownFeature(key)
        return self._features[key].value

    def release(self, key: str) -> None:
        feature = self._features[key]
        if feature.users == 0:
            raise PoolCorrupt(f"feature {key} is released more often than retained")
        feature.users -= 1

    def check_integrity(self) -> None:
        sizes = sum(feature.size for feature in self._features.values())
        if sizes != self.bytes_used or sizes > self.bytes_max or self.entries > self.entries_max:
            raise PoolCorrupt(
                f"{self.entries} features hold {sizes} bytes, booked {self.bytes_used}, bounds {self.entries_max} and "
                f"{self.bytes_max}"
            )

    def inspect(self) -> Iterator[None]:
        """As `SlabPool.inspect`; all in one."""
        self.check_integrity()
        yield
