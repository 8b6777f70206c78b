"""Creates clients of Redis from the URL that the operator specifies.

    redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]     rediss:// is the same with TLS
    unix://PATH[?db=DATABASE]
    redis+sentinel://[USER[:PASSWORD]@]HOST[:PORT],...[/NAME[/DATABASE]]     rediss+sentinel:// with TLS

The options after the `?`, such as `ssl_ca_certs=FILE`, are those of the library `redis`.
"""

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from redis.asyncio import Redis, Sentinel
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from .link import REPLY_SECONDS

_SENTINEL_PORT = 26_379
_SENTINEL_NAME = "mymaster"
# Errors quote no part of the URL: if a password is not percent-encoded, any part of it may be misread as another part
# of the URL.
_INVALID_URL = (
    "--store: not a Redis URL. In a password, each of / ? # @ [ ] and every non-ASCII character must be "
    "percent-encoded; or put it in a file, with --store-password-file"
)
_INVALID_OPTIONS = "--store: the part of the URL after the ? has an unknown option or an invalid value"
_SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel")


def client_factory(url: str, password: str | None) -> Callable[[], Redis]:
    """Return a function that creates a client of the Redis at `url`. The client connects when it is first used.
    Raises ValueError for an invalid URL; the message contains no password."""
    try:
        parts = urlsplit(url)
        scheme, _ = parts.scheme, "sentinel" in parts.scheme or parts.port
    except ValueError:
        raise ValueError(_INVALID_URL) from None
    if scheme not in _SCHEMES:
        raise ValueError(
            f"--store: must be a URL that starts with one of {', '.join(f'{prefix}://' for prefix in _SCHEMES)}"
        )
    if "sentinel" not in scheme and scheme != "unix":
        _database(parts.path.strip("/"))
    # The library must not retry: `Link` decides that for each operation.
    options: dict[str, Any] = {
        "socket_timeout": REPLY_SECONDS,
        "socket_connect_timeout": REPLY_SECONDS,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }
    if password is not None:
        options["password"] = password
    if "sentinel" in scheme:
        return _sentinel_factory(url, options, uses_tls=scheme == "rediss+sentinel")

    def connect() -> Redis:
        client = Redis.from_url(url, **options)
        client.connection_pool.connection_kwargs |= options | {"decode_responses": False}
        return client

    try:
        connect().connection_pool.make_connection()  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, RedisError):
        raise ValueError(_INVALID_OPTIONS) from None
    return connect


class _SentinelRedis(Redis):
    """A client of the primary that Redis Sentinels name. `aclose` also closes the connections to the Sentinels."""

    sentinels: Sequence[Redis] = ()

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Close all connections."""
        await super().aclose(close_connection_pool)
        for sentinel in self.sentinels:
            await sentinel.aclose()


def _sentinel_factory(url: str, options: dict[str, Any], *, uses_tls: bool) -> Callable[[], Redis]:
    parts = urlsplit(url)
    user, _, hosts = parts.netloc.rpartition("@")
    name, _, database = parts.path.strip("/").partition("/")
    addresses = [_address(host) for host in hosts.split(",")]
    username, _, secret = user.partition(":")
    client_options = {**options, "ssl": uses_tls, "db": _database(database)}
    if username:
        client_options["username"] = unquote(username)
    if secret and "password" not in client_options:
        client_options["password"] = unquote(secret)

    def connect() -> Redis:
        sentinels = Sentinel(  # type: ignore[no-untyped-call]
            addresses, sentinel_kwargs={"socket_timeout": REPLY_SECONDS, "ssl": uses_tls}
        )
        client: _SentinelRedis = sentinels.master_for(
            name or _SENTINEL_NAME, redis_class=_SentinelRedis, **client_options
        )
        client.sentinels = sentinels.sentinels
        return client

    return connect


def _address(text: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        if parts.hostname:
            return parts.hostname, parts.port or _SENTINEL_PORT
    except ValueError:
        pass
    raise ValueError(_INVALID_URL)


def _database(text: str) -> int:
    if text and not text.isdecimal():
        raise ValueError("--store: the part of the URL after the last / is not a database number")
    return int(text or 0)
