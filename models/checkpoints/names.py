"""Key maps: public tensor names <-> ours, by ordered rules that work in both directions.

    Rename("model.blocks.{}.self_attn.q.{}", "blocks.{}.self_attn.q.{}")     {} is one dotted part
    Rename("model.{*}", "{*}")                                               {*} is all that is left, dots included

The first rule that matches wins; the same holes stand on both sides in the same order, so the inverse is the swap.
"""

import re
from dataclasses import dataclass
from functools import cached_property

_HOLE = re.compile(r"\{\*?\}")


@dataclass(frozen=True)
class Rename:
    """One rule. Raises ValueError when the two sides have different holes."""

    public: str
    ours: str

    def __post_init__(self) -> None:
        if _HOLE.findall(self.public) != _HOLE.findall(self.ours):
            raise ValueError(f"'{self.public}' and '{self.ours}' have different holes")

    @cached_property
    def _forward(self) -> re.Pattern[str]:
        return _pattern(self.public)

    @cached_property
    def _backward(self) -> re.Pattern[str]:
        return _pattern(self.ours)

    def to_ours(self, key: str) -> str | None:
        return _apply(self._forward, self.ours, key)

    def to_public(self, key: str) -> str | None:
        return _apply(self._backward, self.public, key)


@dataclass(frozen=True, slots=True)
class KeyMap:
    """Ordered rules; a key that no rule matches keeps its name."""

    rules: tuple[Rename, ...] = ()

    def to_ours(self, key: str) -> str:
        return next((name for rule in self.rules if (name := rule.to_ours(key)) is not None), key)

    def to_public(self, key: str) -> str:
        return next((name for rule in self.rules if (name := rule.to_public(key)) is not None), key)


SAME_NAMES = KeyMap()


def _pattern(side: str) -> re.Pattern[str]:
    parts = _HOLE.split(side)
    holes = [r"(.+)" if hole == "{*}" else r"([^.]+)" for hole in _HOLE.findall(side)]
    pattern = re.escape(parts[0]) + "".join(h + re.escape(p) for h, p in zip(holes, parts[1:], strict=True))
    return re.compile(pattern)


def _apply(pattern: re.Pattern[str], template: str, key: str) -> str | None:
    match = pattern.fullmatch(key)
    if match is None:
        return None
    values = iter(match.groups())
    return _HOLE.sub(lambda hole: next(values), template)
