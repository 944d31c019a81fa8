"""A client of the Redis that a URL names, checked before anything relies on it: reachable, ours to write, writable.

    redis://[user:password@]host:port/0    rediss:// (TLS)    unix:///path?db=0
    redis+sentinel://[user:password@]host:port,host:port/name    redis+cluster://[user:password@]host:port

Whatever is wrong is one line, and a password is never in it.
"""

import contextlib
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)

from .streams import APPEND, FAULTS, key_of

SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
EXPECTED = (
    "expected redis://host:port/0, rediss://.., unix:///path, redis+sentinel://host:port/name or "
    "redis+cluster://host:port; percent-encode / : @ # ? % in a password"
)
PROBE = "worldroom-probe"


class RedisUnreachable(OSError):
    """One clear line for the person who started the server."""


async def connect(url: str, timeout_s: float = 2.0) -> Redis:
    """A client of the Redis at `url` that answered; raises `RedisUnreachable`."""
    parts = _parts(url)
    try:
        redis = _client(url, parts, timeout_s)
    except (ValueError, TypeError, AttributeError, UnicodeError) as error:
        raise RedisUnreachable(f"not a Redis URL ({type(error).__name__}); {EXPECTED}") from None
    return await _answering(redis, _place(parts))


async def connect_socket(path: Path, timeout_s: float = 2.0) -> Redis:
    """The same for a unix socket, whatever characters are in its path."""
    redis = Redis(unix_socket_path=str(path), **_options(timeout_s))
    return await _answering(redis, str(path))


async def check_rights(redis: Redis) -> None:
    """Do once what the journal will do all the time; raises `RedisUnreachable` where it may not.

    A Redis that is full for now is let through: the journal spools until it has room.
    """
    key = key_of(PROBE)
    try:
        await redis.eval(APPEND, 1, key, 60, 1, "0.0", b"probe")
        await redis.xrange(key, count=1)
        await redis.xtrim(key, minid="2-0", approximate=False)
        await redis.set(f"{key}:world", b"", ex=60)
        await redis.delete(key)
        await redis.delete(f"{key}:world")
    except OutOfMemoryError:
        return
    except ReadOnlyError:
        raise RedisUnreachable("this Redis is a read-only replica; give the URL of its primary") from None
    except NoPermissionError as error:
        raise RedisUnreachable(f"this Redis user may not do what a journal needs: {_denied(error)}") from None
    except ResponseError as error:
        if "permissions" in str(error):  # inside the script
            raise RedisUnreachable(f"this Redis user may not do what a journal needs: {_denied(error)}") from None
        raise RedisUnreachable(f"this Redis cannot keep a journal: {_denied(error)}") from None
    except FAULTS as error:
        raise RedisUnreachable(f"this Redis stopped answering: {type(error).__name__}") from None


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port if "," not in parts.netloc else None
    except ValueError:
        raise RedisUnreachable(f"not a Redis URL; {EXPECTED}") from None
    if parts.scheme not in SCHEMES or not (parts.netloc or parts.scheme == "unix"):
        raise RedisUnreachable(f"not a Redis URL; {EXPECTED}")
    return parts


def _client(url: str, parts: SplitResult, timeout_s: float) -> Redis:
    options = _options(timeout_s)
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    secrets: dict[str, Any] = {"username": unquote(user) or None, "password": unquote(password) or None}
    tls = parts.scheme.startswith("rediss")
    match parts.scheme.partition("+")[2]:
        case "sentinel":
            name, _, db = parts.path.strip("/").partition("/")
            if not name:
                raise ValueError("no name of a primary")
            places = [(host.rpartition(":")[0], int(host.rpartition(":")[2])) for host in hosts.split(",")]
            sentinel = Sentinel(places, sentinel_kwargs={"socket_timeout": timeout_s})  # type: ignore[no-untyped-call]
            primary: Redis = sentinel.master_for(name, db=int(db or 0), ssl=tls, **secrets, **options)
            return primary
        case "cluster":
            cluster: Any = RedisCluster(
                host=parts.hostname,
                port=parts.port or 6379,
                ssl=tls,
                **secrets,
                socket_timeout=timeout_s,
                socket_connect_timeout=timeout_s,
            )
            spread: Redis = cluster  # the same commands; which node, the hash tag says
            return spread
        case _:
            single: Redis = Redis.from_url(url, **options)
            return single


def _options(timeout_s: float) -> dict[str, Any]:
    return {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 1),
    }


async def _answering(redis: Redis, place: str) -> Redis:
    try:
        await redis.ping()
    except FAULTS as error:
        with contextlib.suppress(*FAULTS):
            await redis.aclose()
        why = "it refuses this user or password" if _is_login(error) else type(error).__name__
        raise RedisUnreachable(
            f"no Redis answers at {place} ({why}); start it, or leave out --redis to use the embedded one"
        ) from None
    return redis


def _is_login(error: Exception) -> bool:
    return isinstance(error, AuthenticationError) or "NOAUTH" in str(error) or "WRONGPASS" in str(error)


def _denied(error: Exception) -> str:
    """What Redis says about itself holds no secret: it names commands and keys."""
    return str(error).splitlines()[0][:160]


def _place(parts: SplitResult) -> str:
    if parts.scheme == "unix":
        return parts.path
    return parts.netloc.rpartition("@")[2] or f"{parts.hostname}:{parts.port or 6379}"
