"""Where a database is, as the operator gave it. What leads there is secret: it may hold a password."""

import re
from typing import NamedTuple

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

Conninfo = dict[str, str]
"""What libpq wants to know of a connection, by its own words; what is missing, as a password, it finds by itself."""

_MODES = {"ro": False, "rw": True}
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_ASSIGNED = re.compile(rf"({_NAME.pattern})=(.+)", re.DOTALL)
_URL = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
_SERVICE = re.compile(r"service=[^\s='\\]+")


class Target(NamedTuple):
    """A database, under the name that clients use."""

    name: str
    conninfo: Conninfo
    writable: bool

    def __repr__(self) -> str:
        return f"Target(name={self.name!r}, writable={self.writable})"


def parse_target(given: str, writable: bool) -> Target:
    """The database of `[NAME=]WHERE[:ro|:rw]`, where WHERE is a URL `postgresql://…` or `service=NAME`; without a
    name it is called as it is at its place, or as the service.

    Raises ValueError, which repeats nothing of what was given but the name.
    """
    name, where = None, given
    assigned = _ASSIGNED.fullmatch(given)
    if assigned is not None and not _SERVICE.match(given):
        name, where = assigned[1], assigned[2]
    rest, _, mode = where.rpartition(":")
    if mode in _MODES and _is_whole(rest):
        where, writable = rest, _MODES[mode]
    if not _is_whole(where):
        raise ValueError(f"{name or 'a database'} is given neither as postgresql://… nor as service=NAME")
    conninfo = _parse(where)
    if conninfo is None:
        encode = "percent-encode what is no letter and no digit in its parts"
        raise ValueError(f"the URL of {name or 'a database'} is not well formed; {encode}")
    if not name:
        found = conninfo.get("dbname") or conninfo.get("service") or conninfo.get("user") or ""
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", found)[:64] or "postgres"
    return Target(name, conninfo, writable)


def _is_whole(where: str) -> bool:
    """Whether it is no more than `postgresql://user`, whose password would be the mode."""
    if _SERVICE.fullmatch(where):
        return True
    return _URL.match(where) is not None and ("@" in where or "/" in where.partition("://")[2])


def _parse(where: str) -> Conninfo | None:
    """What libpq makes of it; None where that would take a part of a password for something else, which it would tell
    the log."""
    plain = where.partition("?")[0]
    if plain.count("@") > 1 or "@" in plain.partition("://")[2].partition("/")[2]:
        return None
    try:
        conninfo = {key: str(value) for key, value in conninfo_to_dict(where).items()}
    except ProgrammingError:
        return None
    ports = conninfo.get("port", "").split(",")
    return conninfo if all(not port or port.isdecimal() for port in ports) else None
