"""Names of tools and prompts of several servers, made unique by the name of their server:

    files + read_text  ──▶  files__read_text  ──▶  files + read_text

The name of a server has no underscore, so the first `__` is where it ends. What a model calls a tool by is
`[A-Za-z0-9_-]{1,64}`, and a name of a tool that does not fit that with its prefix is shortened: what models would not
take is left out, and a digest of the whole name stands at the end. Who has the tool's own names finds it again.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b

LONGEST = 64
"""Characters of a name that every model's API takes; that of the MCP specification is twice as long."""
SEPARATOR = "__"
_SERVER_NAME = re.compile(r"[A-Za-z0-9-]{1,32}")
"""With room for a tool besides."""
_FITS = re.compile(r"[A-Za-z0-9_-]+")
_DIGEST_BYTES = 5
_SHORTENED = re.compile(r"-[0-9a-f]{10}\Z")


def check_server_name(name: str) -> str:
    """The name, where a server may have it. Raises ValueError."""
    if not _SERVER_NAME.fullmatch(name):
        raise ValueError(f"a server's name is 1 to 32 letters, digits and hyphens, not {name[:100]!r}")
    return name


def full_name(server: str, own: str) -> str:
    """The name that a tool or prompt of `server` has among those of all servers, in 64 characters. It is the same
    each time, whatever else there is.

    Raises ValueError for what is no name of a server.
    """
    name = f"{check_server_name(server)}{SEPARATOR}{own}"
    if len(name) <= LONGEST and _FITS.fullmatch(own):
        return name
    digest = blake2b(own.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    kept = "".join(re.findall(_FITS, own))[: LONGEST - len(server) - len(SEPARATOR) - len(digest) - 1]
    return f"{server}{SEPARATOR}{kept}-{digest}"


def split_name(name: str) -> tuple[str, str]:
    """The server of a full name, and the rest, which is the own name where that is not shortened.

    Raises ValueError for a name without a server.
    """
    server, separator, rest = name.partition(SEPARATOR)
    if not separator or not _SERVER_NAME.fullmatch(server):
        raise ValueError(f"this names no server, as in server{SEPARATOR}name: {name[:100]!r}")
    return server, rest


def may_be_shortened(rest: str) -> bool:
    """Whether the rest of a full name looks like a shortened one; only then has `own_name` to be asked."""
    return _SHORTENED.search(rest) is not None


def own_name(name: str, owns: Iterable[str]) -> str | None:
    """Which of the names `owns` of one server the full name stands for; None where it is none of them.

    Raises ValueError for a name without a server.
    """
    server, rest = split_name(name)
    shortened: str | None = None
    for own in owns:
        if own == rest:
            return own
        if full_name(server, own) == name:
            shortened = own
    return shortened
