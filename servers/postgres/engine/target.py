"""Parses the address of a database in the forms that operators write.

The address may contain a password, so errors never repeat the address.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple
from urllib.parse import unquote

from psycopg import ProgrammingError, pq
from psycopg.conninfo import conninfo_to_dict

Conninfo = dict[str, str]
"""Connection parameters by libpq's names. libpq itself determines missing parameters, such as a password."""

_MODES = {"ro": False, "rw": True}
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_ASSIGNMENT = re.compile(rf"({_NAME.pattern})=(.+)", re.DOTALL)
_URL = re.compile(r"(?:jdbc:)?postgres(?:ql)?(?:\+\w+)?://", re.IGNORECASE)
"""The beginning of a URL, which may name a driver as for other programs: jdbc:postgresql:// or
postgresql+psycopg2://."""
_KEYWORD = re.compile(r"([a-z_]{1,40})\s*=\s*")
_SERVICE = re.compile(r"service=[^\s='\\]+")
_PASSWORD_LAST = re.compile(r"password\s*=\s*(?!')\S*$")
"""An unquoted password at the end, which may itself end in `:rw`."""
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]{0,30})://|(file|sqlite):", re.IGNORECASE)
_FILE_SCHEMES = ("file", "sqlite", "sqlite3")
_PARAMETER = re.compile(r"[A-Za-z_]{1,40}")
_TIME = re.compile(r"(\d{1,10})(ms|s|min|h)?")
_UNITS = {None: 1, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000}
_SCHEMA_PARAMETERS = ("schema", "currentSchema", "search_path")
_TIME_PARAMETERS = ("statement_timeout", "lock_timeout")
_SSL_MODES = frozenset({"disable", "allow", "prefer", "require", "verify-ca", "verify-full"})
_SSL_OFF = frozenset({"false", "0"})
"""The values of the parameter `ssl` that name a mode of libpq, and those that turn TLS off."""
_SSL_UNVERIFIED = "no-verify"
"""The name that node-postgres has for libpq's mode `require`, which verifies no certificate."""
_UNUSED = {
    *("connection_limit", "pool_timeout", "socket_timeout", "statement_cache_size"),  # Prisma
    *("prepared_statement_cache_size", "pool_size", "max_overflow"),  # SQLAlchemy
    *("prepareThreshold", "preparedStatementCacheQueries"),  # JDBC
    *("serverVersion", "charset"),  # Doctrine
    *("supa", "workaround"),  # Supabase at Vercel
    "uselibpqcompat",  # node-postgres
    *("pool", "prepared_statements"),  # Rails
    *("pool_max_conns", "pool_min_conns"),  # pgx
    "binary_parameters",  # lib/pq
}
"""Parameters for other clients themselves, such as those of their pools and caches."""


class Target(NamedTuple):
    """A database, under the name that clients use."""

    name: str
    conninfo: Conninfo
    writable: bool
    settings: Mapping[str, str] = {}
    """Settings of each transaction."""
    is_shared: bool = False
    """True if a pooler gives PostgreSQL sessions to other clients between transactions."""
    unused: tuple[str, ...] = ()
    """Parameters of the URL that only other clients use."""

    def __repr__(self) -> str:
        return f"Target(name={self.name!r}, writable={self.writable})"


def parse_target(address: str, writable: bool) -> Target:
    """Parse an address of the form `[NAME=]LOCATION[:ro|:rw]`.

    LOCATION is a URL `postgresql://…`, or keywords of libpq such as `host=db dbname=shop` or `service=NAME`. The
    default for NAME is the name of the database, or of the service. Spaces and quotes around the parts are removed.

    Raises ValueError, whose message contains no part of the `address` except NAME and the names of parameters.
    """
    name, location = None, _strip(address)
    assignment = _ASSIGNMENT.fullmatch(location)
    if assignment is not None and not _has_keywords(location):
        name, location = assignment[1], _strip(assignment[2])
    rest, _, mode = location.rpartition(":")
    # `:ro` or `:rw` may also be a password after the name of a user in a URL, or the end of a password that is the
    # last keyword.
    is_password = not _is_complete(rest) or (_has_keywords(rest) and _PASSWORD_LAST.search(rest) is not None)
    if mode in _MODES and not is_password:
        location, writable = _strip(rest), _MODES[mode]
    label = name or "a database"
    if not _is_complete(location):
        raise ValueError(_explain_unknown(location, label))
    parameters: dict[str, str] = {}
    if _has_keywords(location):
        malformed = (
            f"the keywords of {label} are not well formed: write them as libpq expects them, as in host=db "
            r"dbname=shop, and a value with blanks or quotes as in password='it\'s'"
        )
        conninfo = _parse_conninfo(location, malformed)
    else:
        url, parameters = _split_parameters(_URL.sub("postgresql://", location, count=1), label)
        # If there is a second @, libpq would take part of a password for a host, and show it in messages.
        plain = url.partition("?")[0]
        if plain.count("@") > 1 or "@" in plain.partition("://")[2].partition("/")[2]:
            raise ValueError(_describe_malformed(label))
        conninfo = _parse_conninfo(url, _describe_malformed(label))
    if not name:
        database_name = conninfo.get("dbname") or conninfo.get("service") or conninfo.get("user") or ""
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", database_name)[:64] or "postgres"
    settings = {key: parameters[key] for key in ("search_path", *_TIME_PARAMETERS) if key in parameters}
    unused = tuple(sorted(_UNUSED & parameters.keys()))
    return Target(name, conninfo, writable, settings, parameters.get("pgbouncer") == "true", unused)


def _strip(address: str) -> str:
    """Return the address without surrounding spaces and quotes, which a shell or a settings file may add."""
    text = address.strip()
    while len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1].strip()
    return text


def _explain_unknown(location: str, label: str) -> str:
    """Explain why the address does not belong to a PostgreSQL database."""
    scheme = _SCHEME.match(location)
    if scheme is None or _URL.match(location):
        return f"{label} is given neither as postgresql://… nor as host=… dbname=… or service=NAME"
    kind = (scheme[1] or scheme[2]).lower()
    if kind.partition("+")[0] in _FILE_SCHEMES:
        return f"{label} is an SQLite file, which is for the SQLite server: mcp-bundle-sqlite"
    return f"{label} is a URL of {kind}, but this server queries PostgreSQL: postgresql://…"


def _describe_malformed(label: str) -> str:
    return f"the URL of {label} is not well formed; percent-encode everything but letters and digits in its parts"


def _is_complete(location: str) -> bool:
    """Return True if the location is complete without a following `:…`: keywords, or a URL with more than one word
    after `://`. A single word there may be the name of a user, whose password follows after a colon."""
    if _has_keywords(location):
        return True
    rest = location.partition("://")[2]
    # libpq takes missing parts of a URL from a service, the environment, or its defaults.
    return _URL.match(location) is not None and ("@" in location or "/" in rest or rest[:1] in ("", "?"))


def _has_keywords(location: str) -> bool:
    """Return True if the location begins with a keyword of libpq, as `host=shop` does. In `host=postgresql://…`, the
    word `host` is the NAME of a database."""
    first = _KEYWORD.match(location)
    if first is None or first[1] not in _list_keywords():
        return False
    return _URL.match(location, first.end()) is None and _SERVICE.match(location, first.end()) is None


def _split_parameters(url: str, label: str) -> tuple[str, dict[str, str]]:
    """Split off parameters that libpq does not know, and return the rest of the URL and these parameters by name.

    Raises ValueError for a parameter that this program does not know either.
    """
    plain, _, query = url.partition("?")
    if not query:
        return plain, {}
    parameters: dict[str, str] = {}
    libpq_parts: list[str] = []
    for part in filter(None, query.split("&")):
        key, _, text = part.partition("=")
        if key in ("ssl", "sslmode") and text == _SSL_UNVERIFIED:
            libpq_parts.append("sslmode=require")
        elif key == "ssl" and text in _SSL_MODES:
            # asyncpg's name for libpq's sslmode.
            libpq_parts.append(f"sslmode={text}")
        elif key == "ssl" and text in _SSL_OFF:
            libpq_parts.append("sslmode=disable")
        elif key in _list_keywords():
            libpq_parts.append(part)
        elif _PARAMETER.fullmatch(key) is None or ("@" in query and "@" not in plain):
            # The key is not repeated, since it may be part of a password that was not percent-encoded.
            raise ValueError(_describe_malformed(label))
        else:
            parameters |= _read_parameter(key, unquote(text), label)
    return f"{plain}?{'&'.join(libpq_parts)}", parameters


def _read_parameter(key: str, value: str, label: str) -> dict[str, str]:
    """Return a parameter that libpq does not know, as the name and value of a setting. Raises ValueError, which does
    not repeat the value."""
    if key in _UNUSED:
        return {key: ""}
    schemas = [schema.strip() for schema in value.split(",")]
    if key in _SCHEMA_PARAMETERS and all(schemas) and value.isprintable():
        return {"search_path": ",".join(schemas)}
    if key in _TIME_PARAMETERS and (time := _TIME.fullmatch(value)) is not None:
        return {key: str(int(time[1]) * _UNITS[time[2]])}
    if key == "pgbouncer" and value in ("true", "false"):
        return {key: value}
    if key in (*_SCHEMA_PARAMETERS, *_TIME_PARAMETERS, "pgbouncer"):
        raise ValueError(f"the URL of {label} has a parameter {key!r} with an invalid value")
    raise ValueError(f"the URL of {label} has a parameter {key!r}, which neither libpq nor this server knows")


@cache
def _list_keywords() -> frozenset[str]:
    """Return the names of libpq's parameters, including `ssl`: libpq accepts `ssl=true`, like JDBC."""
    return frozenset(option.keyword.decode() for option in pq.Conninfo.get_defaults()) | {"ssl"}


def _parse_conninfo(location: str, malformed: str) -> Conninfo:
    try:
        conninfo = {key: str(value) for key, value in conninfo_to_dict(location).items()}
    except ProgrammingError:
        raise ValueError(malformed) from None
    if not all(not port or port.isdecimal() for port in conninfo.get("port", "").split(",")):
        raise ValueError(malformed)
    return conninfo
