"""API keys: pairs of a public name and a secret, written `name:secret` as LiveKit servers take them."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

SECRET_MIN = 32


class BadKey(ValueError):
    """Text that is no API key; never quotes the secret."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    name: str
    secret: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "ApiKey":
        """`name:secret`, blanks around either ignored; raises `BadKey`."""
        name, colon, secret = (part.strip() for part in text.partition(":"))
        if not colon or not name or not all(letter.isalnum() or letter in "-_" for letter in name):
            raise BadKey("an API key is NAME:SECRET, the name of letters, digits, '-' and '_'")
        if len(secret) < SECRET_MIN:
            raise BadKey(
                f"the secret of API key '{name}' has {len(secret)} characters, at least {SECRET_MIN} are needed"
            )
        return cls(name, secret)

    @classmethod
    def fresh(cls) -> "ApiKey":
        return cls("WR" + secrets.token_hex(6), secrets.token_urlsafe(33))


class ApiKeys:
    """Those of one server. None = an open server, where nobody needs a token."""

    def __init__(self, keys: Iterable[ApiKey] = ()) -> None:
        self._secrets = {key.name: key for key in keys}

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "ApiKeys":
        """From texts of one key or several, separated by commas or lines; raises `BadKey`."""
        pieces = (piece for text in texts for line in text.splitlines() for piece in line.split(","))
        return cls(ApiKey.parse(piece) for piece in pieces if piece.strip())

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def find(self, name: str) -> ApiKey | None:
        return self._secrets.get(name)

    def first(self) -> ApiKey:
        """The key that signs what the server itself hands out."""
        return next(iter(self._secrets.values()))

    def holds(self, name: str, secret: str) -> bool:
        key = self._secrets.get(name)
        return secrets.compare_digest(key.secret if key is not None else "", secret) and key is not None
