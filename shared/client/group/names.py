"""The names of tools and prompts of several servers, made unique by the name of the server:

    files + read_text  ──▶  files__read_text  ──▶  files + read_text

The name of a server has no underscore, so it ends at the first `__`. The APIs of models accept tool names that match
`[A-Za-z0-9_-]{1,64}`. A full name that does not match is shortened: characters that are not accepted are left out,
and a digest of the tool's own name is appended. With a list of the server's own names, the own name can be determined
again.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b

MAX_NAME_LENGTH = 64
"""Maximum length of a tool's name that the API of every model accepts; the MCP specification allows twice as much."""
SEPARATOR = "__"
_SERVER_NAME = re.compile(r"[A-Za-z0-9-]{1,32}")
"""The pattern of a server name, which leaves room for the name of a tool."""
_ACCEPTED = re.compile(r"[A-Za-z0-9_-]+")
_DIGEST_BYTES = 5
_SHORTENED = re.compile(r"-[0-9a-f]{10}\Z")


def check_server_name(name: str) -> str:
    """Return the name if it is valid for a server. Raises ValueError otherwise."""
    if not _SERVER_NAME.fullmatch(name):
        raise ValueError(f"a server's name must have 1 to 32 letters, digits and hyphens, not {name[:100]!r}")
    return name


def fits_models(name: str) -> bool:
    """Return True if the API of every model accepts a tool with this name."""
    return len(name) <= MAX_NAME_LENGTH and _ACCEPTED.fullmatch(name) is not None


def full_name(server: str, own: str) -> str:
    """Return the name in a group for the tool or prompt that `server` calls `own`. It has at most 64 characters, and
    does not depend on other names.

    Raises ValueError for an invalid server name.
    """
    name = f"{check_server_name(server)}{SEPARATOR}{own}"
    if len(name) <= MAX_NAME_LENGTH and _ACCEPTED.fullmatch(own):
        return name
    digest = blake2b(own.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    allowed = "".join(re.findall(_ACCEPTED, own))[: MAX_NAME_LENGTH - len(server) - len(SEPARATOR) - len(digest) - 1]
    return f"{server}{SEPARATOR}{allowed}-{digest}"


def split_name(name: str) -> tuple[str, str]:
    """Return the server in a full name, and the rest of the name, which is the own name unless it was shortened.

    Raises ValueError for a name without a server.
    """
    server, separator, rest = name.partition(SEPARATOR)
    if not separator or not _SERVER_NAME.fullmatch(server):
        raise ValueError(
            f"the name must begin with the name of a server, as in server{SEPARATOR}name, not {name[:100]!r}"
        )
    return server, rest


def may_be_shortened(rest: str) -> bool:
    """Return True if the rest of a full name looks like a shortened one; only then is `own_name` necessary."""
    return _SHORTENED.search(rest) is not None


def own_name(name: str, own_names: Iterable[str]) -> str | None:
    """Return the own name for the full name `name`, out of `own_names`, those of its server; None if there is none.

    Raises ValueError for a name without a server.
    """
    server, rest = split_name(name)
    shortened: str | None = None
    for own in own_names:
        if own == rest:
            return own
        if full_name(server, own) == name:
            shortened = own
    return shortened
